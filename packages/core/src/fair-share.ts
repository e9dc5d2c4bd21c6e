/**
 * Shares a bounded amount among owners, such as the bytes of a process among publishers. An owner may hold at most a few times
 * as much as is still free: by default twice. So whatever some owners take, a part is left for the others: one alone gets two
 * thirds, two get two fifths each, and a fifth is left.
 */

const PARTS_OF_FREE = 2;

/** What one owner holds. Only a FairShare changes it. */
export interface ShareAccount {
  used: number;
}

export class FairShare {
  readonly max: number;
  readonly #partsOfFree: number;
  #used = 0;

  /**
   * @param max the amount that all owners may hold together
   * @param partsOfFree how many times the free amount an owner may hold
   */
  constructor(max: number, partsOfFree = PARTS_OF_FREE) {
    this.max = max;
    this.#partsOfFree = partsOfFree;
  }

  /**
   * A share of which one owner alone gets all of `alone`, and further ones a reserve beside it: one part of `reserveParts`. For
   * what is held for long, so that a further owner can't wait until some is given back.
   */
  static withReserve(alone: number, reserveParts: number): FairShare {
    return new FairShare(alone + Math.ceil(alone / reserveParts), reserveParts);
  }

  /** What all owners hold together. */
  get used(): number {
    return this.#used;
  }

  /** Whether the owner may hold this much more now. */
  fits(account: Readonly<ShareAccount>, amount: number): boolean {
    return account.used + amount <= this.#partsOfFree * (this.max - this.#used - amount);
  }

  /**
   * Takes an amount if it fits.
   *
   * @param held what the same thing holds already. While nothing else holds any, a thing may grow to any size, so that the
   * largest one gets through at some time
   */
  take(account: ShareAccount, amount: number, held = 0): boolean {
    const isTaken = this.#used === held || this.fits(account, amount);
    if (isTaken) {
      account.used += amount;
      this.#used += amount;
    }
    return isTaken;
  }

  /** Gives back what was taken before. */
  giveBack(account: ShareAccount, amount: number): void {
    account.used -= amount;
    this.#used -= amount;
  }
}

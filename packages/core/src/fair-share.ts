/**
 * Shares a bounded amount among owners, such as the bytes of a process among publishers. An owner may hold at most twice as
 * much as is still free. So whatever some owners take, a part is left for the others: one alone gets two thirds, two get two
 * fifths each, and a fifth is left.
 */

const PARTS_OF_FREE = 2;

/** What one owner holds. Only a FairShare changes it. */
export interface ShareAccount {
  used: number;
}

export class FairShare {
  readonly max: number;
  #used = 0;

  /** @param max the amount that all owners may hold together */
  constructor(max: number) {
    this.max = max;
  }

  /** What all owners hold together. */
  get used(): number {
    return this.#used;
  }

  /** Whether the owner may hold this much more now. */
  fits(account: Readonly<ShareAccount>, amount: number): boolean {
    return account.used + amount <= PARTS_OF_FREE * (this.max - this.#used - amount);
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

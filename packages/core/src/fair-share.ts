/**
 * Shares a bounded amount among owners, such as the bytes of a process among publishers. An owner may hold at most twice as
 * much as is still free. So whatever some owners take, a part is left for the others: one alone gets two thirds, two get two
 * fifths each, and a fifth is left.
 */

const PARTS_OF_FREE = 2;

/** What one owner holds. */
export interface ShareAccount {
  readonly used: number;
}

interface MutableAccount extends ShareAccount {
  used: number;
}

/** Why nothing was taken: the owner holds its share already, or the others hold too much. */
export type ShareRefusal = "own_share" | "others";

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

  /** Makes an account for one owner. Only the share that made it may change it. */
  open(): MutableAccount {
    return { used: 0 };
  }

  /** Says why an amount can't be taken now; undefined if it can. */
  refusalOf(account: ShareAccount, amount: number): ShareRefusal | undefined {
    const wanted = account.used + amount;
    if (wanted <= PARTS_OF_FREE * (this.max - this.#used - amount)) {
      return undefined;
    }
    // Would it fit if the others held nothing?
    return wanted <= PARTS_OF_FREE * (this.max - wanted) ? "others" : "own_share";
  }

  /** Takes an amount, or says why not. */
  take(account: MutableAccount, amount: number): ShareRefusal | undefined {
    const refusal = this.refusalOf(account, amount);
    if (refusal === undefined) {
      account.used += amount;
      this.#used += amount;
    }
    return refusal;
  }

  /** Gives back what was taken before. */
  giveBack(account: MutableAccount, amount: number): void {
    account.used -= amount;
    this.#used -= amount;
  }
}

/** Bounds the calls that this process works on. No publisher can take the room of the others. */
import { FairShare, type ShareAccount } from "@adrelay/core";

export class CallsInFlight {
  readonly #share: FairShare;
  /** As many as there are publishers in the settings. */
  readonly #accounts = new Map<string, ShareAccount>();

  constructor(max: number) {
    this.#share = new FairShare(max);
  }

  /** Begins a call of a publisher. False if there is no room; otherwise it must be ended. */
  begin(publisher: string): boolean {
    const account = this.#accounts.get(publisher) ?? { used: 0 };
    this.#accounts.set(publisher, account);
    return this.#share.take(account, 1);
  }

  end(publisher: string): void {
    const account = this.#accounts.get(publisher);
    if (account !== undefined) {
      this.#share.giveBack(account, 1);
    }
  }
}

/** What a proxy process may hold in all. */
import type { ServerResponse } from "node:http";
import { FairShare, type ShareAccount } from "@adrelay/core";
import type { Publisher } from "@adrelay/provider";
import type { CountOverload } from "@adrelay/relay-kit";

/** A stream lasts minutes, so room comes back slowly. A tenth more is kept for publishers that come while one has all of it. */
const RESERVE_PARTS = 10;

/** What this process may hold: calls, and bytes of bodies that may get an ad. Publishers share both. */
export class ProxyRoom {
  readonly calls: FairShare;
  readonly bytes: FairShare;
  readonly #accounts = new Map<
    Publisher["id"],
    { readonly calls: ShareAccount; readonly bytes: ShareAccount }
  >();
  readonly #onRefused: CountOverload;

  /** @param limits `callsMax`: of one publisher. All together may have a tenth more. `bytesMax`: of all together. */
  constructor(limits: { readonly callsMax: number; readonly bytesMax: number }, onRefused: CountOverload) {
    this.calls = FairShare.withReserve(limits.callsMax, RESERVE_PARTS);
    this.bytes = new FairShare(limits.bytesMax);
    this.#onRefused = onRefused;
  }

  /** Takes room for a call until its response closes. False: there is none. */
  admit({ id }: Pick<Publisher, "id">, response: ServerResponse & { readonly isSurplus?: boolean }): boolean {
    if (response.isSurplus === true) {
      this.#onRefused("connections");
      return false;
    }
    const account = this.#accountOf(id).calls;
    if (!this.calls.take(account, 1)) {
      this.#onRefused("calls");
      return false;
    }
    response.once("close", () => this.calls.giveBack(account, 1));
    return true;
  }

  /** Opens an account for the body of one call. */
  openBody({ id }: Pick<Publisher, "id">): HeldBody {
    return new HeldBody(this.bytes, this.#accountOf(id).bytes, () => this.#onRefused("bytes"));
  }

  #accountOf(id: Publisher["id"]) {
    let account = this.#accounts.get(id);
    if (account === undefined) {
      account = { calls: { used: 0 }, bytes: { used: 0 } };
      this.#accounts.set(id, account);
    }
    return account;
  }
}

/** The bytes that the body of one call, and the enhanced one, take. */
export class HeldBody {
  readonly #share: FairShare;
  readonly #account: ShareAccount;
  readonly #onRefused: () => void;
  #bytes = 0;

  constructor(share: FairShare, account: ShareAccount, onRefused: () => void) {
    this.#share = share;
    this.#account = account;
    this.#onRefused = onRefused;
  }

  hold(bytes: number): boolean {
    const isHeld = this.#share.take(this.#account, bytes, this.#bytes);
    if (isHeld) {
      this.#bytes += bytes;
    } else {
      this.#onRefused();
    }
    return isHeld;
  }

  /** The bytes are no longer in memory. May be called more than once. */
  release(): void {
    this.#share.giveBack(this.#account, this.#bytes);
    this.#bytes = 0;
  }
}

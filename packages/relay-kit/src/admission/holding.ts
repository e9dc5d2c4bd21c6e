/** What one request may hold of this process, and what it holds. */
import type { FairShare, ShareAccount } from "@adrelay/core";

/** A quota of the publisher that this process keeps. */
type LocalQuota = RateQuota | "injections_in_flight" | "bytes_in_flight";
type RateQuota = "requests_per_second" | "bytes_per_second";

/** A limit of this process, for all publishers together. */
export const PROCESS_LIMITS = ["calls", "bytes", "connections"] as const;
export type ProcessLimit = (typeof PROCESS_LIMITS)[number];

/** Why a request was refused: by a quota of its publisher, or because this process has no room. */
export type Refusal =
  | {
      readonly kind: "over_quota";
      readonly quota: LocalQuota;
      readonly limit: number;
      /** undefined if the quota is a rate. */
      readonly used: number | undefined;
      readonly retryAfterSeconds: number;
    }
  | { readonly kind: "overloaded"; readonly limit: ProcessLimit };

/** An amount in flight frees up within moments. */
export const RETRY_AFTER_SECONDS = 1;

/** The refusal of a publisher that has as much in flight as its quota allows. */
export function overQuota(quota: Exclude<LocalQuota, RateQuota>, limit: number, used: number): Refusal {
  return { kind: "over_quota", quota, limit, used, retryAfterSeconds: RETRY_AFTER_SECONDS };
}

/** The refusal of a publisher that sends faster than its quota allows. */
export function overRate(quota: RateQuota, limit: number, waitMs: number): Refusal {
  const retryAfterSeconds = Math.ceil(waitMs / 1000);
  return { kind: "over_quota", quota, limit, used: undefined, retryAfterSeconds };
}

/** Where the bytes of one publisher's requests are counted. */
export interface BytesAccount {
  readonly share: FairShare;
  readonly account: ShareAccount;
  readonly quotaBytes: number;
}

/** Bytes of a body or of an answer that are in memory. */
export class HeldBytes {
  readonly #of: BytesAccount;
  readonly #onRefused: (refusal: Refusal) => void;
  #bytes = 0;
  #isReleased = false;

  constructor(of: BytesAccount, onRefused: (refusal: Refusal) => void) {
    this.#of = of;
    this.#onRefused = onRefused;
  }

  /**
   * Counts more bytes, or refuses them. The publisher's only body in flight is never over its quota. A negative number of
   * bytes is given back. After the release nobody would give back more, so more isn't held.
   */
  hold(bytes: number): boolean {
    const { share, account, quotaBytes } = this.#of;
    if (bytes < 0) {
      // All may have been released meanwhile.
      const givenBack = Math.min(-bytes, this.#bytes);
      this.#bytes -= givenBack;
      share.giveBack(account, givenBack);
      return true;
    }
    if (this.#isReleased) {
      return bytes === 0;
    }
    const used = account.used;
    if (used > this.#bytes && used + bytes > quotaBytes) {
      this.#onRefused(overQuota("bytes_in_flight", quotaBytes, used));
      return false;
    }
    if (!share.take(account, bytes, this.#bytes)) {
      this.#onRefused({ kind: "overloaded", limit: "bytes" });
      return false;
    }
    this.#bytes += bytes;
    return true;
  }

  /** The bytes are no longer in memory. May be called more than once. */
  release(): void {
    const { share, account } = this.#of;
    this.#isReleased = true;
    share.giveBack(account, this.#bytes);
    this.#bytes = 0;
  }
}

/** What a holding is made from. */
export interface HoldingParts {
  readonly bytes: BytesAccount;
  /** Takes a body that was read from the publisher's bytes a second, less what was announced. Says why it is refused, if it is. */
  chargeBody(bytes: number): Refusal | undefined;
  endCall(): void;
  onRefused(refusal: Refusal): void;
}

/** What an admitted request holds. It ends with the request's answer, except for what something else has taken over. */
export class Holding {
  readonly #of: HoldingParts;
  readonly #body: HeldBytes;
  readonly #answer: HeldBytes;
  readonly #taken = { body: false, answer: false };
  #refusal: Refusal | undefined;
  #isReading = false;
  #endsAfterReading = false;
  #hasEnded = false;

  constructor(of: HoldingParts) {
    const refuse = (refusal: Refusal) => this.refuse(refusal);
    this.#of = of;
    this.#body = new HeldBytes(of.bytes, refuse);
    this.#answer = new HeldBytes(of.bytes, refuse);
  }

  /** Why bytes were refused, if some were. */
  get refusal(): Refusal | undefined {
    return this.#refusal;
  }

  /**
   * Takes what was read of the body from the publisher's bytes a second, less what was announced. Returns why the body is to be
   * refused, if it is; what was read costs as much nevertheless.
   */
  chargeBody(bytes: number): Refusal | undefined {
    return this.#of.chargeBody(bytes);
  }

  /** Notes and counts why the request is refused. */
  refuse(refusal: Refusal): void {
    this.#refusal = refusal;
    this.#of.onRefused(refusal);
  }

  holdBody(bytes: number): boolean {
    return this.#body.hold(bytes);
  }

  holdAnswer(bytes: number): boolean {
    return this.#answer.hold(bytes);
  }

  /** Holds on while the body is read: one that has come whole is also read if its caller hangs up. The reading must end. */
  async whileReading<T>(reading: Promise<T>): Promise<T> {
    this.#isReading = true;
    try {
      return await reading;
    } finally {
      this.#isReading = false;
      if (this.#endsAfterReading) {
        // What goes on without the caller takes over first.
        setImmediate(() => this.end());
      }
    }
  }

  /** From now on the caller of this releases the body's bytes. */
  takeBody(): HeldBytes {
    this.#taken.body = true;
    return this.#body;
  }

  /** From now on the caller of this releases the answer's bytes. */
  takeAnswer(): HeldBytes {
    this.#taken.answer = true;
    return this.#answer;
  }

  /** The request has its answer, or its caller is gone. May be called more than once. */
  end(): void {
    if (this.#isReading) {
      this.#endsAfterReading = true;
      return;
    }
    if (this.#hasEnded) {
      return;
    }
    this.#hasEnded = true;
    this.#of.endCall();
    if (!this.#taken.body) {
      this.#body.release();
    }
    if (!this.#taken.answer) {
      this.#answer.release();
    }
  }
}

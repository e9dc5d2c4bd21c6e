/** Bounds the calls that this process works on, and the bytes of their bodies. No publisher can take the room of the others. */
import { FairShare, type ShareAccount } from "@adrelay/core";

const MEBIBYTE = 1024 * 1024;
/** Fits a container of 768 MB: what is no longer held stays in memory until it is collected. */
const BYTES_MAX = 128 * MEBIBYTE;
/** Of the largest size: so many bodies fit always, with their copies and twice, so that a publisher's part has room for one. */
const BODIES_MIN = 8;

/** Most bytes of bodies and their copies, if a body may have `bodyBytesMax` without the escapes of JSON. */
export function bytesInFlightMax(bodyBytesMax: number): number {
  return Math.max(BYTES_MAX, BODIES_MIN * bodyBytesMax);
}

interface PublisherUse {
  readonly calls: ShareAccount;
  readonly bytes: ShareAccount;
}

export interface InFlightLimits {
  readonly callsMax: number;
  readonly bytesMax: number;
}

export class CallsInFlight {
  readonly #calls: FairShare;
  readonly #bytes: FairShare;
  /** As many as there are publishers in the settings. */
  readonly #uses = new Map<string, PublisherUse>();

  constructor({ callsMax, bytesMax }: InFlightLimits) {
    this.#calls = new FairShare(callsMax);
    this.#bytes = new FairShare(bytesMax);
  }

  /** Begins a call of a publisher. Undefined if there is no room; otherwise it must be ended. */
  begin(publisher: string): CallInFlight | undefined {
    const use = this.#uses.get(publisher) ?? { calls: { used: 0 }, bytes: { used: 0 } };
    this.#uses.set(publisher, use);
    return this.#calls.take(use.calls, 1)
      ? new CallInFlight({ calls: this.#calls, bytes: this.#bytes, use })
      : undefined;
  }
}

interface CallParts {
  readonly calls: FairShare;
  readonly bytes: FairShare;
  readonly use: PublisherUse;
}

/** A call, and what it holds of its body. */
export class CallInFlight {
  readonly #of: CallParts;
  #bytes = 0;
  #hasEnded = false;

  constructor(of: CallParts) {
    this.#of = of;
  }

  /**
   * Counts more bytes before they are held. False: there is no room for them, or the call has ended. A negative number is given
   * back, and is never refused.
   */
  hold(bytes: number): boolean {
    const { bytes: share, use } = this.#of;
    if (this.#hasEnded) {
      return bytes <= 0;
    }
    if (bytes < 0) {
      share.giveBack(use.bytes, -bytes);
    } else if (!share.take(use.bytes, bytes, this.#bytes)) {
      return false;
    }
    this.#bytes += bytes;
    return true;
  }

  /** It has its answer, or its caller is gone. May be called more than once. */
  end(): void {
    if (this.#hasEnded) {
      return;
    }
    const { calls, bytes, use } = this.#of;
    this.#hasEnded = true;
    calls.giveBack(use.calls, 1);
    bytes.giveBack(use.bytes, this.#bytes);
  }
}

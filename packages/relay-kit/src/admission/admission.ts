/**
 * Lets requests in, before their bodies are read. Each has to fit the quotas of its publisher and the limits of this process.
 *
 * 1. Whatever one publisher sends, it can't take what others need: the limits of the process are shared fairly.
 * 2. Bytes are counted when they are in memory, and until they no longer are. What a request announces is only asked for.
 */
import {
  FairShare,
  limitInBytes,
  type Quotas,
  quotasOf,
  type ShareAccount,
  TokenBucket,
} from "@adrelay/core";
import type { Publisher } from "@adrelay/provider";
import { type BytesAccount, Holding, overQuota, overRate, type Refusal } from "./holding.ts";

export interface AdmissionOptions {
  /** The quotas of publishers that have no others. */
  readonly quotas: Quotas;
  /** Requests with a valid key that aren't answered yet. */
  readonly callsMax: number;
  /** Bytes of bodies and of providers' answers, and of their copies. */
  readonly bytesMax: number;
  onRefused(publisher: Publisher, refusal: Refusal): void;
}

/** Names of operations in metrics and log lines; everything else is `other`. */
export type OperationName = "start_injection" | "acknowledge" | "look_up";

/** A request, before its body is read. */
export interface WantedCall {
  readonly operation: OperationName;
  /** What it will hold if its headers are right; 0 if they don't say. */
  readonly announcedBytes: number;
  /** The length of its body as its headers announce it, 1 if they only say that there is one; default: 0. */
  readonly bodyBytes?: number;
}

export type AdmissionResult = { readonly kind: "admitted"; readonly holding: Holding } | Refusal;

/** What is left of the two quotas that are rates. */
interface Buckets {
  readonly requests: TokenBucket;
  readonly bytes: TokenBucket;
}

const newBuckets = (): Buckets => ({ requests: new TokenBucket(), bytes: new TokenBucket() });

/** What a publisher uses of this process. */
interface PublisherUse {
  readonly publisher: Publisher;
  readonly quotas: Quotas;
  /** One for each operation: an ad that was sold can be acknowledged, however many injections are refused. */
  readonly buckets: Readonly<Record<OperationName, Buckets>>;
  readonly calls: ShareAccount;
  readonly bytes: BytesAccount;
  /** Injections under way. */
  readonly injections: { used: number };
}

/** Admits requests, and counts what each publisher holds of this process. */
export class Admission {
  readonly calls: FairShare;
  readonly bytes: FairShare;
  readonly #options: AdmissionOptions;
  readonly #uses = new Map<Publisher["id"], PublisherUse>();

  constructor(options: AdmissionOptions) {
    this.#options = options;
    this.calls = new FairShare(options.callsMax);
    this.bytes = new FairShare(options.bytesMax);
  }

  /** Admits a request, or says why not. The holding must be ended. */
  admit(publisher: Publisher, call: WantedCall, nowMs: number = performance.now()): AdmissionResult {
    const use = this.#useOf(publisher);
    const refusal = this.#refusalOf(use, call, nowMs);
    const onRefused = (why: Refusal) => this.#options.onRefused(publisher, why);
    if (refusal !== undefined) {
      onRefused(refusal);
      return refusal;
    }
    const injections = call.operation === "start_injection" ? 1 : 0;
    use.injections.used += injections;
    const endCall = () => {
      use.injections.used -= injections;
      this.calls.giveBack(use.calls, 1);
    };
    const { operation, bodyBytes = 0 } = call;
    const chargeBody = (bytes: number) => chargeBytes(use, operation, { owed: bytes - bodyBytes });
    return {
      kind: "admitted",
      holding: new Holding({ bytes: use.bytes, chargeBody, endCall, onRefused }),
    };
  }

  /** Takes one of the calls if it returns undefined. */
  #refusalOf(use: PublisherUse, call: WantedCall, nowMs: number): Refusal | undefined {
    const { quotas, bytes } = use;
    const { requestsPerSecond, burst, injectionsInFlight } = quotas;
    const { requests } = use.buckets[call.operation];
    const waitMs = requests.take({ ratePerSecond: requestsPerSecond, burst }, nowMs);
    if (waitMs > 0) {
      return overRate("requests_per_second", requestsPerSecond, waitMs);
    }
    if (call.operation === "start_injection" && use.injections.used >= injectionsInFlight) {
      return overQuota("injections_in_flight", injectionsInFlight, use.injections.used);
    }
    const used = bytes.account.used;
    if (used > 0 && used + call.announcedBytes > bytes.quotaBytes) {
      return overQuota("bytes_in_flight", bytes.quotaBytes, used);
    }
    if (this.bytes.used > 0 && !this.bytes.fits(bytes.account, call.announcedBytes)) {
      return { kind: "overloaded", limit: "bytes" };
    }
    if (!this.calls.take(use.calls, 1)) {
      return { kind: "overloaded", limit: "calls" };
    }
    const overBytes = chargeBytes(use, call.operation, { wanted: call.bodyBytes ?? 0 }, nowMs);
    if (overBytes !== undefined) {
      this.calls.giveBack(use.calls, 1);
    }
    return overBytes;
  }

  /** What a publisher holds stays the same when its quotas change. */
  #useOf(publisher: Publisher): PublisherUse {
    const known = this.#uses.get(publisher.id);
    if (known?.publisher === publisher) {
      return known;
    }
    const quotas = quotasOf(publisher, this.#options.quotas);
    const use = {
      publisher,
      quotas,
      buckets: known?.buckets ?? {
        start_injection: newBuckets(),
        acknowledge: newBuckets(),
        look_up: newBuckets(),
      },
      calls: known?.calls ?? { used: 0 },
      bytes: {
        share: this.bytes,
        account: known?.bytes.account ?? { used: 0 },
        quotaBytes: limitInBytes(quotas.bytesInFlight, this.bytes.max),
      },
      injections: known?.injections ?? { used: 0 },
    };
    this.#uses.set(publisher.id, use);
    return use;
  }
}

/** Bytes of a body: those that it is going to have, or that it had beyond these. */
type ChargedBytes = { readonly wanted: number } | { readonly owed: number };

/**
 * Takes bytes of a body from its publisher's bytes a second, or says why it is refused. What is owed is taken also then. None,
 * or fewer than announced, cost nothing.
 */
function chargeBytes(
  { quotas: { bytesPerSecond, bytesBurst }, buckets }: PublisherUse,
  operation: OperationName,
  charged: ChargedBytes,
  nowMs: number = performance.now(),
): Refusal | undefined {
  const { bytes: bucket } = buckets[operation];
  const bytes = "owed" in charged ? charged.owed : charged.wanted;
  if (bytes <= 0) {
    return undefined;
  }
  const limits = { ratePerSecond: bytesPerSecond, burst: bytesBurst };
  const waitMs = "owed" in charged ? bucket.owe(limits, nowMs, bytes) : bucket.take(limits, nowMs, bytes);
  return waitMs > 0 ? overRate("bytes_per_second", bytesPerSecond, waitMs) : undefined;
}

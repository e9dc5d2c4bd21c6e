import type { PublisherId } from "@adrelay/contract";
import type { CircuitReason, ProviderHealth } from "@adrelay/core";
import type { CircuitMember } from "@adrelay/store";

/** The circuit breaker must open: why, for how long at least, and whether only one publisher's attempts say so. */
export interface BreakerTrip {
  readonly reason: CircuitReason;
  readonly holdMs: number;
  readonly accused: PublisherId | undefined;
}

/** Failures in a row that open the breaker of a provider whose attempts get through as a rule. */
const FAILURES_MIN = 25;
/** A provider that often fails has many failures in a row by chance, so more of them are needed: this many times the mean. */
const MEANS_MIN = 20;
const FAILURES_MAX = 200;
/** How much the latest success counts in the mean number of attempts per success. */
const LATEST_SHARE = 0.1;
/** One acknowledgment that fails again and again says nothing about the provider. */
const FAILING_IDS_MIN = 5;
const THROTTLED_IDS_MIN = 3;
/** Up to this mean number of attempts per success, almost all attempts have got through lately. */
const STEADY_MEAN_MAX = 1.01;
/** Before the first attempts nobody knows whether the provider throttles some. After 22 successes in a row it counts as steady. */
const MEAN_AT_START = 1.1;
const REFUSALS_MIN = 2;
/** If only one of an account's publishers fails, this long nothing of the others got through either. */
const ONE_PUBLISHER_MS = 30_000;

/** An acknowledgment that an attempt was made for. */
export interface Attempted extends CircuitMember {
  /** No attempt was made for it before. */
  readonly isFirst: boolean;
}

type Failure = Attempted & Exclude<ProviderHealth, { kind: "healthy" }>;

/** What the breaker must open for. */
interface Evidence {
  readonly reason: CircuitReason;
  readonly failures: readonly Failure[];
}

/**
 * Watches how one provider account answers this process, and says when the account's circuit breaker must open: only if
 * nothing has got through for a number of attempts. What one acknowledgment meets says nothing about the account; only
 * what several meet does, and if the account has several publishers, what several of them meet.
 *
 * A refused key is the account's, so two refusals are enough, even of one acknowledgment. The breaker itself is shared by all
 * processes and is in Redis.
 */
export class FailureDetector {
  #publishers: number;
  readonly #now: () => number;
  /** The latest failures since the last success, at most as many as can be needed. */
  #failures: Failure[] = [];
  #firstAtMs = 0;
  #meanAttempts = MEAN_AT_START;

  /**
   * @param publishers how many publishers share the account
   * @param now a clock in milliseconds that never goes back
   */
  constructor(publishers: number, now: () => number = () => performance.now()) {
    this.#publishers = publishers;
    this.#now = now;
  }

  /** Records what an attempt shows about the provider. Returns a trip if the breaker must open now. */
  observe({ publisher, id, isFirst }: Attempted, health: ProviderHealth): BreakerTrip | undefined {
    if (health.kind === "healthy") {
      this.#meanAttempts += LATEST_SHARE * (this.#failures.length + 1 - this.#meanAttempts);
      this.reset();
      return undefined;
    }
    // Acknowledgments that are turned away come again for days. At a quiet hour they must not look like a refused key. Nor
    // do those that are always throttled look like a pause: see #findEvidence.
    if (health.kind === "blocking" && !isFirst) {
      return undefined;
    }
    if (this.#failures.length === 0) {
      this.#firstAtMs = this.#now();
    }
    this.#failures = [...this.#failures, { publisher, id, isFirst, ...health }].slice(-FAILURES_MAX);
    const evidence = this.#findEvidence();
    return evidence === undefined ? undefined : this.#tripFor(evidence);
  }

  /** Sets how many publishers share the account from now on. */
  set publishers(publishers: number) {
    this.#publishers = publishers;
  }

  /** Forgets what it has seen. To be called when the breaker has changed its state: earlier failures no longer count. */
  reset(): void {
    this.#failures = [];
  }

  #findEvidence(): Evidence | undefined {
    const failures = this.#failures;
    const of = (kind: Failure["kind"]) => failures.filter((failure) => failure.kind === kind);
    const [refusing, throttled, blocking] = [of("refusing"), of("throttled"), of("blocking")];
    if (refusing.length >= REFUSALS_MIN) {
      return { reason: "auth", failures: refusing };
    }
    if (idsOf(throttled.filter(({ isFirst }) => isFirst)) >= this.#throttledMin) {
      return { reason: "throttled", failures: throttled };
    }
    const isBlocking = blocking.length > failures.length / 2;
    if (
      failures.length < (isBlocking ? FAILURES_MIN : this.#failuresMin) ||
      idsOf(failures) < FAILING_IDS_MIN
    ) {
      return undefined;
    }
    return { reason: isBlocking ? "auth" : "outage", failures };
  }

  get #failuresMin(): number {
    return Math.min(Math.max(FAILURES_MIN, MEANS_MIN * this.#meanAttempts), FAILURES_MAX);
  }

  /** If the provider throttles some and takes others, or may do so, three in a row are chance. */
  get #throttledMin(): number {
    return this.#meanAttempts > STEADY_MEAN_MAX ? this.#failuresMin : THROTTLED_IDS_MIN;
  }

  #tripFor({ reason, failures }: Evidence): BreakerTrip | undefined {
    const [only, ...others] = new Set(failures.map(({ publisher }) => publisher));
    const isOfAccount = others.length > 0 || this.#publishers === 1 || failures[0]?.kind === "refusing";
    if (!isOfAccount && this.#now() - this.#firstAtMs < ONE_PUBLISHER_MS) {
      return undefined;
    }
    const latest = failures.at(-1);
    const holdMs = latest !== undefined && "holdMs" in latest ? latest.holdMs : 0;
    return { reason, holdMs, accused: isOfAccount ? undefined : only };
  }
}

function idsOf(failures: readonly Failure[]): number {
  return new Set(failures.map(({ id }) => id)).size;
}

import type { PublisherId } from "@adrelay/contract";
import type { CircuitReason, ProviderHealth } from "@adrelay/core";
import type { CircuitMember } from "@adrelay/store";

/** The circuit breaker must open: why, for how long at least, and whether only one publisher's attempts say so. */
export interface BreakerTrip {
  readonly reason: CircuitReason;
  readonly holdMs: number;
  readonly accused: PublisherId | undefined;
}

/** A provider of which one attempt in five gets through has so many failures in a row once in 300 attempts. */
const FAILURES_MIN = 25;
/** One acknowledgment that fails again and again says nothing about the provider. */
const FAILING_IDS_MIN = 5;
const THROTTLED_IDS_MIN = 3;
const REFUSALS_MIN = 2;
/** If only one of an account's publishers fails, this long nothing of the others got through either. */
const ONE_PUBLISHER_MS = 30_000;

type Failure = CircuitMember & Exclude<ProviderHealth, { kind: "healthy" }>;

/**
 * Watches how one provider account answers this process, and says when the account's circuit breaker must open: only if
 * nothing has got through for a number of attempts. What one acknowledgment meets says nothing about the account; only
 * what several meet does, and if the account has several publishers, what several of them meet.
 *
 * A refused key is the account's, so two refusals are enough. The breaker itself is shared by all processes and is in
 * Redis.
 */
export class FailureDetector {
  readonly #publishers: number;
  readonly #now: () => number;
  /** The latest failures since the last success, at most as many as are needed. */
  #failures: Failure[] = [];
  #firstAtMs = 0;

  /**
   * @param publishers how many publishers share the account
   * @param now a clock in milliseconds that never goes back
   */
  constructor(publishers: number, now: () => number = () => performance.now()) {
    this.#publishers = publishers;
    this.#now = now;
  }

  /** Records what an attempt shows about the provider. Returns a trip if the breaker must open now. */
  observe(member: CircuitMember, health: ProviderHealth): BreakerTrip | undefined {
    if (health.kind === "healthy") {
      this.reset();
      return undefined;
    }
    if (this.#failures.length === 0) {
      this.#firstAtMs = this.#now();
    }
    this.#failures = [...this.#failures, { ...member, ...health }].slice(-FAILURES_MIN);
    const reason = this.#findReason();
    return reason === undefined ? undefined : this.#tripFor(reason);
  }

  /** Forgets what it has seen. To be called when the breaker has changed its state: earlier failures no longer count. */
  reset(): void {
    this.#failures = [];
  }

  #findReason(): CircuitReason | undefined {
    const failures = this.#failures;
    const of = (kind: Failure["kind"]) => failures.filter((failure) => failure.kind === kind);
    if (of("refusing").length >= REFUSALS_MIN) {
      return "auth";
    }
    if (idsOf(of("throttled")) >= THROTTLED_IDS_MIN) {
      return "throttled";
    }
    if (failures.length < FAILURES_MIN || idsOf(failures) < FAILING_IDS_MIN) {
      return undefined;
    }
    return of("blocking").length > failures.length / 2 ? "auth" : "outage";
  }

  #tripFor(reason: CircuitReason): BreakerTrip | undefined {
    const failing = new Set(this.#failures.map(({ publisher }) => publisher));
    const [only] = failing;
    const isKey = this.#failures.some(({ kind }) => kind === "refusing");
    const accused = failing.size === 1 && this.#publishers > 1 && !isKey ? only : undefined;
    if (accused !== undefined && this.#now() - this.#firstAtMs < ONE_PUBLISHER_MS) {
      return undefined;
    }
    const last = this.#failures.at(-1);
    return { reason, holdMs: last !== undefined && "holdMs" in last ? last.holdMs : 0, accused };
  }
}

function idsOf(failures: readonly Failure[]): number {
  return new Set(failures.map(({ id }) => id)).size;
}

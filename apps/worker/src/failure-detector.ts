import type { CircuitReason, ProviderHealth } from "@adrelay/core";
import { CircuitState, ConsecutiveBreaker, CountBreaker } from "cockatiel";

/** The circuit breaker must open: why, and for how long at least. */
export interface BreakerTrip {
  readonly reason: CircuitReason;
  readonly holdMs: number;
}

/** In an outage nearly all calls fail. A provider that fails only some calls is still worth calling. */
const OUTAGE_SHARE = 0.8;
const OUTAGE_WINDOW_CALLS = 20;
const OUTAGE_CALLS_MIN = 5;
/** How many refusals with 403 in a row open the breaker. A single one may be about its acknowledgment only. */
const AUTH_REFUSALS = 3;

/**
 * Watches how one provider account answers this process, and says when the account's circuit breaker must open. The
 * breaker itself is shared by all processes and is in Redis.
 */
export class FailureDetector {
  #outage = makeOutageBreaker();
  readonly #auth = new ConsecutiveBreaker(AUTH_REFUSALS);

  /** Records what an attempt shows about the provider. Returns a trip if the breaker must open now. */
  observe(health: ProviderHealth): BreakerTrip | undefined {
    switch (health.kind) {
      case "healthy":
        this.#outage.success(CircuitState.Closed);
        this.#auth.success();
        return undefined;
      case "throttled":
        return { reason: "throttled", holdMs: health.holdMs };
      case "failing":
        return this.#outage.failure(CircuitState.Closed)
          ? { reason: "outage", holdMs: health.holdMs }
          : undefined;
      case "refusing":
        return this.#auth.failure() || health.isCertain ? { reason: "auth", holdMs: 0 } : undefined;
      default:
        return health satisfies never;
    }
  }

  /** Forgets what it has seen. To be called when the breaker has changed its state: earlier failures no longer count. */
  reset(): void {
    this.#outage = makeOutageBreaker();
    this.#auth.success();
  }
}

function makeOutageBreaker(): CountBreaker {
  return new CountBreaker({
    threshold: OUTAGE_SHARE,
    size: OUTAGE_WINDOW_CALLS,
    minimumNumberOfCalls: OUTAGE_CALLS_MIN,
  });
}

import type { CircuitReason, ProviderHealth } from "@adrelay/core";
import { CircuitState, ConsecutiveBreaker, CountBreaker } from "cockatiel";

/** That a circuit is to be opened, and for how long at the least. */
export interface Trip {
  readonly reason: CircuitReason;
  readonly holdMs: number;
}

/** An outage shows in nearly all calls; a provider that fails some of them is worth calling on. */
const OUTAGE_SHARE = 0.8;
const OUTAGE_WINDOW_CALLS = 20;
const OUTAGE_CALLS_MIN = 5;
/** Refusals with 403 in a row. One alone may be about its acknowledgment. */
const AUTH_REFUSALS = 3;

/**
 * Watches what one process sees of one provider account, and tells when its circuit is to be opened. What
 * follows then is shared by all processes: see the ledger's gates.
 */
export class TripSwitch {
  #outage = newOutageBreaker();
  readonly #auth = new ConsecutiveBreaker(AUTH_REFUSALS);

  /** Takes what an attempt says of the provider; a trip if that was enough. */
  observe(health: ProviderHealth): Trip | undefined {
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

  /** Forgets what it saw: the circuit has moved, and what comes now is another story. */
  reset(): void {
    this.#outage = newOutageBreaker();
    this.#auth.success();
  }
}

function newOutageBreaker(): CountBreaker {
  return new CountBreaker({
    threshold: OUTAGE_SHARE,
    size: OUTAGE_WINDOW_CALLS,
    minimumNumberOfCalls: OUTAGE_CALLS_MIN,
  });
}

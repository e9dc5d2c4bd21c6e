/** Whether Redis accepts writes, as this process' heartbeats show. */
import { explainRedisError } from "@adrelay/core";
import { StoreRefusalError } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";

/** What Redis made of this process' latest heartbeat. */
export type WriteState =
  | { readonly kind: "accepted" }
  /** It takes nothing new. What is queued goes out. `why`: for people; follows the word "Redis". */
  | { readonly kind: "full"; readonly why: string }
  /** It refused the write, or didn't answer. `why`: undefined if it replied no error that is known. */
  | { readonly kind: "refused"; readonly why: string | undefined };

/** Without an answer for this long, nobody knows whether Redis accepts writes. */
const ANSWER_VALID_MS = 3500;

export class WriteWatch {
  readonly #log: StoreLog;
  #state: WriteState = { kind: "refused", why: undefined };
  #answeredAtMs = Number.NEGATIVE_INFINITY;
  #loggedWhy: string | undefined;

  constructor(log: StoreLog) {
    this.#log = log;
  }

  /** Doesn't ask Redis. */
  get state(): WriteState {
    const isKnown = performance.now() - this.#answeredAtMs < ANSWER_VALID_MS;
    return this.#state.kind === "refused" || isKnown ? this.#state : { kind: "refused", why: undefined };
  }

  /** To be told of each heartbeat that Redis took. `refusal`: how it refuses what needs memory; empty if it doesn't. */
  onAnswer(refusal: string): void {
    this.#answeredAtMs = performance.now();
    const error = refusal === "" ? undefined : new StoreRefusalError(refusal);
    this.#enter(
      error === undefined
        ? { kind: "accepted" }
        : { kind: "full", why: explainRedisError(error) ?? error.message },
      error,
    );
  }

  /** To be told of each heartbeat that failed. */
  onError(error: unknown): void {
    this.#enter({ kind: "refused", why: explainRedisError(error) }, error);
  }

  /** Logs each change once. That Redis is away is logged by the connection. */
  #enter(state: WriteState, err: unknown): void {
    this.#state = state;
    const why = state.kind === "accepted" ? undefined : state.why;
    if (why !== undefined && why !== this.#loggedWhy) {
      this.#log.error({ event: "redis_refuses_writes", why: `Redis ${why}`, err });
      this.#loggedWhy = why;
    } else if (state.kind === "accepted" && this.#loggedWhy !== undefined) {
      this.#log.info({ event: "redis_accepts_writes" });
      this.#loggedWhy = undefined;
    }
  }
}

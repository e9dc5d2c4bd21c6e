import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { type DurabilityMode, durabilityFaults } from "./redis-durability.ts";

/** What a check found; `unanswered` if Redis could not be asked. */
export type DurabilityCheck =
  | { readonly kind: "durable" }
  | { readonly kind: "faulty"; readonly faults: readonly string[] }
  | { readonly kind: "unanswered" };

const RETRY_MS = 250;

/**
 * Watches whether Redis is a place for acknowledgments: at start, and again after each reconnection, when
 * it may be another Redis or have other settings. Until a check has passed, and from the moment a
 * connection is lost, the answer is no. In mode `warn` faults are logged and it goes on.
 */
export class DurabilityGuard {
  readonly #redis: Redis;
  readonly #mode: DurabilityMode;
  readonly #log: Logger;
  #isDurable = false;
  /** Counts connections, so that an answer of an earlier one is not taken for the present one's. */
  #connection = 0;

  constructor(redis: Redis, mode: DurabilityMode, log: Logger) {
    this.#redis = redis;
    this.#mode = mode;
    this.#log = log;
    redis.on("close", () => {
      this.#connection += 1;
      this.#isDurable = false;
    });
    redis.on("ready", () => void this.#checkUntilAnswered());
  }

  get isDurable(): boolean {
    return this.#isDurable;
  }

  /** Asks Redis now. */
  async check(): Promise<DurabilityCheck> {
    const connection = this.#connection;
    try {
      const faults = await durabilityFaults(this.#redis, this.#mode);
      if (connection !== this.#connection) {
        return { kind: "unanswered" };
      }
      this.#isDurable = faults.length === 0 || this.#mode === "warn";
      if (faults.length > 0) {
        this.#log[this.#mode === "warn" ? "warn" : "error"]({ event: "redis_not_durable", faults });
      }
      return this.#isDurable ? { kind: "durable" } : { kind: "faulty", faults };
    } catch {
      return { kind: "unanswered" };
    }
  }

  async #checkUntilAnswered(): Promise<void> {
    const connection = this.#connection;
    while (connection === this.#connection && (await this.check()).kind === "unanswered") {
      await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
    }
  }
}

import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { type DurabilityMode, durabilityFaults } from "./redis-durability.ts";

/**
 * Watches whether Redis is a place for acknowledgments: at start, and again after each reconnection, when
 * it may be another Redis or have other settings. In mode `warn` faults are logged and it goes on.
 */
export class DurabilityGuard {
  readonly #redis: Redis;
  readonly #mode: DurabilityMode;
  readonly #log: Logger;
  #isDurable = false;

  constructor(redis: Redis, mode: DurabilityMode, log: Logger) {
    this.#redis = redis;
    this.#mode = mode;
    this.#log = log;
    redis.on("ready", () => void this.check().catch(() => {}));
  }

  /** False until a check has passed; always true after one in mode `warn`. */
  get isDurable(): boolean {
    return this.#isDurable;
  }

  /** Asks Redis now, and answers with its faults; rejects if Redis can't be asked. */
  async check(): Promise<string[]> {
    const faults = await durabilityFaults(this.#redis, this.#mode);
    this.#isDurable = faults.length === 0 || this.#mode === "warn";
    if (faults.length > 0) {
      this.#log[this.#mode === "warn" ? "warn" : "error"]({ event: "redis_not_durable", faults });
    }
    return faults;
  }
}

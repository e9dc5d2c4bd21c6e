import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { type DurabilityMode, durabilityFaults } from "./redis-durability.ts";

/** What a check found; `unanswered` if Redis could not be asked. */
export type DurabilityCheck =
  | { readonly kind: "durable" }
  | { readonly kind: "faulty"; readonly faults: readonly string[] }
  | { readonly kind: "unanswered" };

/** How soon Redis is asked again, by what the last check found: settings can be changed while it runs. */
const NEXT_CHECK_MS: Readonly<Record<DurabilityCheck["kind"], number>> = {
  durable: 30_000,
  faulty: 2000,
  unanswered: 250,
};

/**
 * Watches whether Redis is a place for acknowledgments: at start, after each reconnection, when it may be
 * another Redis or have other settings, and from time to time. Until a check has passed, and from the moment
 * a connection is lost, the answer is no. In mode `warn` faults are logged and it goes on.
 */
export class DurabilityGuard {
  readonly #redis: Redis;
  readonly #mode: DurabilityMode;
  readonly #log: Logger;
  #isDurable = false;
  /** Counts connections, so that an answer of an earlier one is not taken for the present one's. */
  #connection = 0;
  #faultsTold = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Redis, mode: DurabilityMode, log: Logger) {
    this.#redis = redis;
    this.#mode = mode;
    this.#log = log;
    redis.on("close", () => {
      this.#connection += 1;
      this.#isDurable = false;
    });
    redis.on("ready", () => void this.check());
    redis.once("end", () => clearTimeout(this.#timer));
  }

  get isDurable(): boolean {
    return this.#isDurable;
  }

  /** Asks Redis now; the next question follows by itself. */
  async check(): Promise<DurabilityCheck> {
    const checked = await this.#ask();
    clearTimeout(this.#timer);
    this.#timer = setTimeout(() => void this.check(), NEXT_CHECK_MS[checked.kind]).unref();
    return checked;
  }

  async #ask(): Promise<DurabilityCheck> {
    const connection = this.#connection;
    try {
      const faults = await durabilityFaults(this.#redis, this.#mode);
      if (connection !== this.#connection) {
        return { kind: "unanswered" };
      }
      this.#isDurable = faults.length === 0 || this.#mode === "warn";
      this.#tell(faults);
      return this.#isDurable ? { kind: "durable" } : { kind: "faulty", faults };
    } catch {
      return { kind: "unanswered" };
    }
  }

  /** Once for each change, not for each check. */
  #tell(faults: readonly string[]): void {
    const told = faults.join("; ");
    if (told !== "" && told !== this.#faultsTold) {
      this.#log[this.#mode === "warn" ? "warn" : "error"]({ event: "redis_not_durable", faults });
    }
    this.#faultsTold = told;
  }
}

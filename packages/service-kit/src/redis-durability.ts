/**
 * Whether Redis keeps what it is given, which acknowledgments depend on: its append-only file (AOF) must be on, and it
 * must not evict keys when its memory is full.
 */
import { redisErrorKind } from "@adrelay/core";
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { Gauge, type Registry } from "prom-client";
import { CannotStartError } from "./lifecycle.ts";
import { waitForRedis } from "./redis.ts";

export const DURABILITY_MODES = ["require", "strict", "warn"] as const;

/** The values of REDIS_DURABILITY: what is demanded of Redis, and whether a fault is only logged. */
type DurabilityMode = (typeof DURABILITY_MODES)[number];

/** What Redis reports with INFO about its version, durability and memory. */
export interface RedisInfo {
  /** Such as "Redis 6.2.5" or "Valkey 9.1.2", for people. */
  readonly version: string;
  readonly isAofOn: boolean;
  readonly evictionPolicy: string | undefined;
  readonly usedBytes: number;
  /** 0 if there is no limit. */
  readonly limitBytes: number;
}

/** Reads what INFO reports. Unlike CONFIG, managed services allow it. */
export async function loadRedisInfo(redis: Redis): Promise<RedisInfo> {
  const info = await redis.info();
  // Valkey reports the version of Redis that it is compatible with as well.
  const valkey = infoField(info, "valkey_version");
  return {
    version: valkey === undefined ? `Redis ${infoField(info, "redis_version")}` : `Valkey ${valkey}`,
    isAofOn: infoField(info, "aof_enabled") === "1",
    evictionPolicy: infoField(info, "maxmemory_policy"),
    usedBytes: Number(infoField(info, "used_memory") ?? 0),
    limitBytes: Number(infoField(info, "maxmemory") ?? 0),
  };
}

function infoField(info: string, name: string): string | undefined {
  return new RegExp(`^${name}:(.*?)\\r?$`, "m").exec(info)?.[1];
}

/**
 * Reads when Redis writes its append-only file to disk: always, everysec or no. Returns undefined if CONFIG is not allowed.
 * Rejects if Redis gave no answer, because that says nothing about its settings.
 */
export async function loadSyncPolicy(redis: Redis): Promise<string | undefined> {
  const reply: unknown = await redis.config("GET", "appendfsync").catch(undefinedIfNotAllowed);
  // The reply is a list or a map, depending on the version of the protocol.
  return /"(always|everysec|no)"/.exec(JSON.stringify(reply) ?? "")?.[1];
}

function undefinedIfNotAllowed(error: unknown): undefined {
  const kind = redisErrorKind(error);
  if (kind !== "no_permission" && kind !== "unknown_command") {
    throw error;
  }
}

/**
 * Describes why Redis is not durable enough; empty if it is. Mode `strict` also demands `appendfsync always`: with
 * `everysec` a crash of Redis can lose the writes of the last seconds, although it has confirmed them.
 */
async function loadDurabilityFaults(redis: Redis, mode: DurabilityMode): Promise<string[]> {
  const { isAofOn, evictionPolicy } = await loadRedisInfo(redis);
  const faults: string[] = [];
  if (!isAofOn) {
    faults.push("the append-only file is off: set appendonly yes");
  }
  if (evictionPolicy !== "noeviction") {
    faults.push(`maxmemory-policy is ${evictionPolicy ?? "unknown"}: set noeviction`);
  }
  if (mode === "strict" && (await loadSyncPolicy(redis)) !== "always") {
    faults.push("appendfsync is not always: REDIS_DURABILITY=strict requires appendfsync always");
  }
  return faults;
}

/** The result of a check; `unanswered` if Redis gave no answer. */
type DurabilityCheck =
  | { readonly kind: "durable" }
  | { readonly kind: "faulty"; readonly faults: readonly string[] }
  | { readonly kind: "unanswered" };

/** The time to the next check, by the result of the last one. Redis' settings can change while it runs. */
const NEXT_CHECK_MS: Readonly<Record<DurabilityCheck["kind"], number>> = {
  durable: 30_000,
  faulty: 2000,
  unanswered: 250,
};

/**
 * Watches whether Redis is durable. It checks after each connection, because it may be another Redis or have other
 * settings, and from time to time after that. `isDurable` is false until a check has passed, and from the moment the
 * connection is lost. In mode `warn` faults are only logged.
 */
export class DurabilityGuard {
  readonly #redis: Redis;
  readonly #mode: DurabilityMode;
  readonly #log: Logger;
  #isDurable = false;
  #isStopped = false;
  /** Counts connections, so that an answer on an earlier connection says nothing about the current one. */
  #connection = 0;
  #loggedFaults = "";
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Redis, mode: DurabilityMode, log: Logger) {
    this.#redis = redis;
    this.#mode = mode;
    this.#log = log;
  }

  get isDurable(): boolean {
    return this.#isDurable;
  }

  /** Checks from now on, until `stop` or the end of the Redis connection. */
  start(): void {
    this.#unsubscribe();
    if (!this.#isStopped) {
      this.#redis.on("close", this.#onClose).on("ready", this.#onReady).on("end", this.#onEnd);
    }
  }

  /** From now on nothing is checked, and `isDurable` is false. */
  stop(): void {
    this.#isStopped = true;
    this.#isDurable = false;
    this.#unsubscribe();
    clearTimeout(this.#timer);
  }

  readonly #onReady = () => void this.check();
  readonly #onEnd = () => this.stop();
  readonly #onClose = () => {
    this.#connection += 1;
    this.#isDurable = false;
  };

  #unsubscribe(): void {
    this.#redis.off("close", this.#onClose).off("ready", this.#onReady).off("end", this.#onEnd);
  }

  /** Checks now. Never rejects. */
  async check(): Promise<DurabilityCheck> {
    const checked = await this.#check();
    clearTimeout(this.#timer);
    if (!this.#isStopped) {
      this.#timer = setTimeout(() => void this.check(), NEXT_CHECK_MS[checked.kind]).unref();
    }
    return checked;
  }

  async #check(): Promise<DurabilityCheck> {
    const connection = this.#connection;
    try {
      const faults = await loadDurabilityFaults(this.#redis, this.#mode);
      if (connection !== this.#connection || this.#isStopped) {
        return { kind: "unanswered" };
      }
      this.#isDurable = faults.length === 0 || this.#mode === "warn";
      this.#logFaults(faults);
      return this.#isDurable ? { kind: "durable" } : { kind: "faulty", faults };
    } catch {
      return { kind: "unanswered" };
    }
  }

  /** Logs faults when they change, not at each check. */
  #logFaults(faults: readonly string[]): void {
    const joined = faults.join("; ");
    if (joined !== "" && joined !== this.#loggedFaults) {
      this.#log[this.#mode === "warn" ? "warn" : "error"]({ event: "redis_not_durable", faults });
    }
    this.#loggedFaults = joined;
  }
}

/** Redis must not be used for acknowledgments. The message says which settings to change. */
class RedisNotDurableError extends CannotStartError {
  override readonly name = "RedisNotDurableError";
}

const FIRST_CONNECTION_TIMEOUT_MS = 5000;

/**
 * Starts a guard for a connection, and rejects if Redis is there and not durable. If Redis is away, the service may start:
 * the guard checks Redis once it is there, and until then no acknowledgment is accepted.
 */
export async function guardRedis(redis: Redis, mode: DurabilityMode, log: Logger): Promise<DurabilityGuard> {
  const guard = new DurabilityGuard(redis, mode, log);
  guard.start();
  const isThere = await waitForRedis(redis, FIRST_CONNECTION_TIMEOUT_MS);
  const checked = isThere ? await guard.check() : ({ kind: "unanswered" } as const);
  switch (checked.kind) {
    case "durable":
      return guard;
    case "unanswered":
      log.warn({ event: "redis_away_at_start" });
      return guard;
    case "faulty":
      guard.stop();
      throw new RedisNotDurableError(
        `Redis is not durable: ${checked.faults.join("; ")}. Set REDIS_DURABILITY=warn to start in spite of that.`,
      );
    default:
      return checked satisfies never;
  }
}

/** Registers `adrelay_redis_durable`: whether this process may accept acknowledgments, as far as Redis is concerned. */
export function reportDurability(registry: Registry, guard: Pick<DurabilityGuard, "isDurable">): void {
  new Gauge({
    name: "adrelay_redis_durable",
    help: "1 if Redis answers and is durable; 0 if not: acknowledgments then get 503.",
    registers: [registry],
    collect() {
      this.set(guard.isDurable ? 1 : 0);
    },
  });
}

/**
 * Whether Redis can be used, and keeps what it is given, which acknowledgments depend on: its append-only file (AOF) must
 * be on, and it must not evict keys when its memory is full.
 */
import type { Redis } from "ioredis";
import type { Logger } from "pino";
import { loadRedisInfo, loadSyncPolicy, type RedisInfo, type RedisMemory } from "./redis-info.ts";

export const DURABILITY_MODES = ["require", "strict", "warn"] as const;

/** The values of REDIS_DURABILITY: what is demanded of Redis, and whether a fault is only logged. */
type DurabilityMode = (typeof DURABILITY_MODES)[number];

/** What our user of Redis may not do. */
export interface MissingRights {
  /** Commands without which the process can't work. */
  readonly needed: readonly string[];
  /** Commands without which it works less well. */
  readonly wanted: readonly string[];
}

export interface GuardRules {
  readonly mode: DurabilityMode;
  /** Asks Redis what our user may not do. Without it, rights aren't checked. */
  readonly loadMissingRights?: () => Promise<MissingRights>;
}

/** Describes why Redis is not known to be durable enough; empty if it is. */
async function listDurabilityFaults(redis: Redis, info: RedisInfo, mode: DurabilityMode): Promise<string[]> {
  const { versionFault, isAofOn, evictionPolicy } = info;
  const faults = versionFault === undefined ? [] : [versionFault];
  if (isAofOn === undefined && evictionPolicy === undefined) {
    return [
      "our user may ask neither INFO nor CONFIG GET, so nobody knows whether data are kept: permit one",
    ];
  }
  if (isAofOn !== true) {
    faults.push("the append-only file is off: set appendonly yes");
  }
  if (evictionPolicy !== "noeviction") {
    faults.push(`maxmemory-policy is ${evictionPolicy ?? "unknown"}: set noeviction`);
  }
  // With `everysec` a crash of Redis can lose the writes of the last seconds, although it has confirmed them.
  if (mode === "strict" && (await loadSyncPolicy(redis)) !== "always") {
    faults.push("appendfsync is not always: REDIS_DURABILITY=strict requires appendfsync always");
  }
  return faults;
}

/** The result of a check; `unanswered` if Redis gave no answer. */
export type DurabilityCheck =
  | { readonly kind: "durable" }
  | { readonly kind: "faulty"; readonly faults: readonly string[] }
  /** In no mode can it be used. */
  | { readonly kind: "unusable"; readonly faults: readonly string[] }
  | { readonly kind: "unanswered"; readonly error: unknown };

/** The time to the next check, by the result of the last one. Redis' settings can change while it runs. */
const NEXT_CHECK_MS: Readonly<Record<DurabilityCheck["kind"], number>> = {
  durable: 30_000,
  faulty: 2000,
  unusable: 2000,
  unanswered: 250,
};

/**
 * Watches whether Redis is durable. It checks after each connection, because it may be another Redis or have other
 * settings, and from time to time after that. `isDurable` is false until a check has passed, and from the moment the
 * connection is lost. In mode `warn` faults of durability are only logged.
 */
export class DurabilityGuard {
  readonly #redis: Redis;
  readonly #rules: GuardRules;
  readonly #log: Logger;
  #isDurable = false;
  #isStopped = false;
  #memory: RedisMemory | undefined;
  #forbidden: readonly string[] = [];
  #faults: readonly string[] = [];
  /** Counts connections, so that an answer on an earlier connection says nothing about the current one. */
  #connection = 0;
  /** What was logged last, by its name here. */
  readonly #logged = new Map<string, string>();
  #timer: NodeJS.Timeout | undefined;

  constructor(redis: Redis, rules: GuardRules, log: Logger) {
    this.#redis = redis;
    this.#rules = rules;
    this.#log = log;
  }

  get isDurable(): boolean {
    return this.#isDurable;
  }

  /** As of the last check; undefined if Redis is away or our user may not ask. */
  get memory(): RedisMemory | undefined {
    return this.#memory;
  }

  /** Commands that our user may not run, as of the last check. The process works without them. */
  get forbidden(): readonly string[] {
    return this.#forbidden;
  }

  /** What people should know of Redis' settings, for the readiness, as of the last check. */
  warnings(): Readonly<Record<string, string>> {
    return this.#faults.length === 0 ? {} : { redis_durability: this.#faults.join("; ") };
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
    this.#memory = undefined;
    this.#faults = [];
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
    const { mode, loadMissingRights } = this.#rules;
    try {
      const info = await loadRedisInfo(this.#redis);
      const faults = await listDurabilityFaults(this.#redis, info, mode);
      const { needed = [], wanted = [] } = (await loadMissingRights?.()) ?? {};
      if (connection !== this.#connection || this.#isStopped) {
        return { kind: "unanswered", error: undefined };
      }
      this.#memory = info.memory;
      this.#forbidden = wanted;
      this.#faults = needed.length === 0 ? faults : [...faults, describeForbidden(needed)];
      this.#isDurable = needed.length === 0 && (faults.length === 0 || mode === "warn");
      this.#logChanges({ faults, needed, wanted });
      if (needed.length > 0) {
        return { kind: "unusable", faults: [describeForbidden(needed)] };
      }
      return this.#isDurable ? { kind: "durable" } : { kind: "faulty", faults };
    } catch (error) {
      return { kind: "unanswered", error };
    }
  }

  #logChanges(found: { readonly faults: readonly string[] } & MissingRights): void {
    const { faults, needed, wanted } = found;
    const level = this.#rules.mode === "warn" ? "warn" : "error";
    if (this.#isNews("faults", faults)) {
      this.#log[level]({ event: "redis_not_durable", faults });
    }
    if (this.#isNews("needed", needed)) {
      this.#log.error({ event: "redis_unusable", forbidden: needed });
    }
    if (this.#isNews("wanted", wanted)) {
      this.#log.warn({ event: "redis_rights_missing", forbidden: wanted });
    }
  }

  /** Whether these are to be logged: there are some, and others than at the check before. */
  #isNews(name: string, found: readonly string[]): boolean {
    const joined = found.join("; ");
    const isNews = joined !== "" && joined !== this.#logged.get(name);
    this.#logged.set(name, joined);
    return isNews;
  }
}

/** Why Redis can't be used without these rights. */
export function describeForbidden(commands: readonly string[]): string {
  return `our user may not run ${commands.join(", ")}: see the rights in docs/operations.md`;
}

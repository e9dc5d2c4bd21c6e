/**
 * Slows guesses of tokens down. Each address has a few refusals free, and gets one back every few seconds; while it has none,
 * its tokens aren't looked at. The number of addresses is bounded: the one that was refused longest ago is forgotten.
 */
import { isIPv6 } from "node:net";
import type { Logger } from "pino";
import { Counter, type Registry } from "prom-client";
import { RecentCount } from "./recent-count.ts";

/** What a token opens: the admin API, or the metrics. */
export type OpsEndpoint = "admin" | "metrics";

const ENDPOINTS = ["admin", "metrics"] as const satisfies readonly OpsEndpoint[];

/** slowed: it wasn't looked at. missing: no token was sent, which is no guess. */
const REASONS = ["unknown", "slowed", "missing"] as const;
export type RefusalReason = (typeof REASONS)[number];

const FREE_REFUSALS = 5;
/** Together at most 15 tokens in an address' first minute, and 10 in each later one. */
const REFUND_INTERVAL_MS = 6000;
const ADDRESSES_MAX = 10_000;
/** How far back `recentRefusals` looks. */
export const RECENT_LOGIN_MINUTES = 10;

export interface LoginGuardOptions {
  readonly registry: Registry;
  readonly log: Pick<Logger, "warn">;
  /** Milliseconds of a clock that never goes back. */
  now?(): number;
}

export class LoginGuard {
  readonly #log: Pick<Logger, "warn">;
  readonly #now: () => number;
  readonly #recent = new RecentCount(RECENT_LOGIN_MINUTES);
  readonly #refused: Counter<"endpoint" | "reason">;
  /** When each address will have all its free refusals again, by its last refusal. */
  readonly #restoredAtMs = new Map<string, number>();

  constructor({ registry, log, now = () => performance.now() }: LoginGuardOptions) {
    this.#log = log;
    this.#now = now;
    this.#refused = new Counter({
      name: "adrelay_logins_refused_total",
      help: "Requests to an ops listener without a valid token. Endpoints: admin, metrics. Reasons: unknown, slowed (too many refusals from the address, so the token wasn't looked at), missing (no token was sent).",
      labelNames: ["endpoint", "reason"],
      registers: [registry],
    });
    for (const endpoint of ENDPOINTS) {
      for (const reason of REASONS) {
        this.#refused.inc({ endpoint, reason }, 0);
      }
    }
  }

  /** How long no token of this address is looked at; 0 if its next one is. */
  waitSeconds(address: string): number {
    const spentMs = (this.#restoredAtMs.get(networkOf(address)) ?? 0) - this.#now();
    return Math.max(Math.ceil((spentMs - (FREE_REFUSALS - 1) * REFUND_INTERVAL_MS) / 1000), 0);
  }

  /** How many tokens were refused lately, whether they were looked at or not. */
  get recentRefusals(): number {
    return this.#recent.sum(this.#now());
  }

  count(endpoint: OpsEndpoint, reason: RefusalReason): void {
    this.#refused.inc({ endpoint, reason });
    if (reason !== "missing") {
      this.#recent.add(this.#now());
    }
  }

  /** A token of this address was looked at, and is none of ours. */
  recordRefusal(endpoint: OpsEndpoint, address: string): void {
    this.count(endpoint, "unknown");
    const network = networkOf(address);
    const nowMs = this.#now();
    const restoredAtMs = Math.max(this.#restoredAtMs.get(network) ?? 0, nowMs) + REFUND_INTERVAL_MS;
    this.#restoredAtMs.delete(network);
    this.#restoredAtMs.set(network, restoredAtMs);
    const [oldest] = this.#restoredAtMs.keys();
    if (this.#restoredAtMs.size > ADDRESSES_MAX && oldest !== undefined) {
      this.#restoredAtMs.delete(oldest);
    }
    this.#log.warn({ event: "login_refused", endpoint, address, slowed: this.waitSeconds(address) > 0 });
  }
}

/** One caller usually has all IPv6 addresses of a network of 64 bits, so these share their refusals. */
function networkOf(address: string): string {
  if (!isIPv6(address)) {
    return address;
  }
  const [head = "", tail] = address.split("%")[0]?.split("::") ?? [];
  const left = head === "" ? [] : head.split(":");
  const right = tail === undefined || tail === "" ? [] : tail.split(":");
  const zeros = tail === undefined ? 0 : Math.max(8 - left.length - right.length, 0);
  return [...left, ...Array<string>(zeros).fill("0"), ...right].slice(0, 4).join(":");
}

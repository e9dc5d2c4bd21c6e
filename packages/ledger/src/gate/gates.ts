/**
 * The gates of provider accounts, shared by all workers: whether attempts may go out, and which queued
 * acknowledgments wait for that.
 *
 * 1. While a circuit is open, one attempt goes out each probe interval, of all workers together.
 * 2. While it recovers, no second sees more attempts than the configured rate in the first minute; then the
 *    rate doubles each minute, until nothing waits.
 * 3. Waiting costs no attempt, and publishers of one account take turns.
 * 4. A waiting acknowledgment is queued in the books; this is an index of those, and losing it loses time alone:
 *    the job in the queue comes by itself in the end.
 */
import { type AdResponseId, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import type { CircuitPhase, CircuitReason } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import { type GateKeys, gateKeys, idOf, memberOf } from "../keys.ts";
import { CLAIM_CODES, type ClaimCode, decodeReply } from "../reply-codes.ts";
import { createScriptRunner, type RunScript } from "../scripts.ts";
import { type GateAccount, type GateState, phaseSchema, reasonSchema } from "./gate-state.ts";

export interface GatesOptions {
  readonly redis: Redis;
  /** Least time between two probes of an open circuit. */
  readonly probeIntervalMs: number;
  /** Most attempts a second in the first minute of a recovery. */
  readonly recoveryRatePerSecond: number;
  readonly partition?: string;
}

/** One acknowledgment of one publisher. */
export interface GateMember {
  readonly publisher: PublisherId;
  readonly id: AdResponseId;
}

export interface GateTick extends GateState {
  /** Let through just now: to be brought back from the queue's delay; see `forget`. */
  readonly released: readonly GateMember[];
}

export interface Parking {
  readonly account: string;
  readonly member: GateMember;
  /** Its place: by the time since when its attempt is due, or at the end. */
  readonly place: { readonly kind: "by_time"; readonly dueAtMs: number } | { readonly kind: "last" };
  /** Told in the same step to the gateway that waits there, if one does. */
  readonly notify: { readonly channel: string; readonly message: string } | undefined;
}

export type GateEvent =
  | { readonly kind: "trip" | "probe_failed"; readonly reason: CircuitReason; readonly holdMs: number }
  /** `probe_now`: a worker has come; the next probe is due, an interval after the latest one at the earliest. */
  | { readonly kind: "probe_succeeded" | "probe_now" };

/** How much slower a refused key is tried again: haste doesn't mend it. */
export const AUTH_PROBE_FACTOR = 12;
/** What was let through and not taken within this time waits again: its job may not have been delayed yet. */
const LEASE_MS = 2000;

export class ProviderGates {
  readonly #redis: Redis;
  readonly #run: RunScript;
  readonly #keys: GateKeys;
  readonly #intervalMs: number;
  readonly #rate: number;

  constructor({ redis, probeIntervalMs, recoveryRatePerSecond, partition = "0" }: GatesOptions) {
    this.#redis = redis;
    this.#run = createScriptRunner(redis);
    this.#keys = gateKeys(partition);
    this.#intervalMs = probeIntervalMs;
    this.#rate = recoveryRatePerSecond;
  }

  /** Names of the accounts whose circuit isn't closed, or for which something waits. */
  async busy(): Promise<ReadonlySet<string>> {
    return new Set(await this.#redis.smembers(this.#keys.busy));
  }

  /** Lets through what may go out now, at most `room` of them; see scripts/gate-tick.lua. */
  async tick({ name, publishers }: GateAccount, room: number): Promise<GateTick> {
    const keys = [...this.#keys.forGate(name), ...publishers.map((id) => this.#keys.parked(id))];
    const reply = await this.#run("gate-tick", keys, [name, this.#rate, room, LEASE_MS, ...publishers]);
    const [, phase, reason, sinceMs, nextProbeAtMs, waiting, released] = tickSchema.parse(reply);
    return { phase, reason, sinceMs, nextProbeAtMs, waiting, released: released.map(parseMember) };
  }

  /** Asks whether an attempt may be made now, while the circuit isn't closed; see scripts/gate-claim.lua. */
  async claim(account: string, member: GateMember): Promise<{ code: ClaimCode; phase: CircuitPhase }> {
    const args = [nameOf(member), this.#rate, this.#intervalMs];
    const reply = await this.#run("gate-claim", this.#keys.forGate(account), args);
    const [code, phase] = claimSchema.parse(reply);
    return { code: decodeReply(CLAIM_CODES, code), phase };
  }

  /** Puts an acknowledgment among those that wait; its job is about to be delayed in the queue. */
  async park({ account, member, place, notify }: Parking): Promise<void> {
    const keys = [...this.#keys.forGate(account), this.#keys.parked(member.publisher), this.#keys.due];
    const at = place.kind === "by_time" ? place.dueAtMs : "";
    const told = [notify?.channel ?? "", notify?.message ?? ""];
    await this.#run("gate-park", keys, [account, memberOf(member.id), at, ...told]);
  }

  /** Moves a circuit; answers its phases before and after. */
  async report(account: string, event: GateEvent): Promise<{ before: CircuitPhase; after: CircuitPhase }> {
    const reason = "reason" in event ? event.reason : "";
    const waitMs = "reason" in event ? this.#waitOf(event) : this.#intervalMs;
    const keys = this.#keys.forGate(account);
    const reply = await this.#run("gate-report", keys, [account, event.kind, reason, waitMs]);
    const [before, after] = z.tuple([phaseSchema, phaseSchema]).parse(reply);
    return { before, after };
  }

  /** Takes members off the list of those let through, for good: they need no claim, or have nothing to claim. */
  async forget(account: string, members: readonly GateMember[]): Promise<void> {
    const [, released = ""] = this.#keys.forGate(account);
    if (members.length > 0) {
      await this.#redis.zrem(released, ...members.map(nameOf));
    }
  }

  #waitOf({ kind, reason, holdMs }: Extract<GateEvent, { reason: CircuitReason }>): number {
    switch (reason) {
      case "throttled":
        return holdMs;
      case "auth":
        // The first probe comes soon: a refusal may have been a slip.
        return this.#intervalMs * (kind === "trip" ? 1 : AUTH_PROBE_FACTOR);
      case "outage":
        return Math.max(holdMs, this.#intervalMs);
      default:
        return reason satisfies never;
    }
  }
}

const tickSchema = z.tuple([
  z.number(),
  phaseSchema,
  reasonSchema,
  z.coerce.number(),
  z.coerce.number(),
  z.number(),
  z.array(z.string()),
]);
const claimSchema = z.tuple([z.number(), phaseSchema]);
function nameOf({ publisher, id }: GateMember): string {
  return `${publisher}|${memberOf(id)}`;
}

function parseMember(name: string): GateMember {
  const [publisher, member = ""] = name.split("|");
  return { publisher: publisherIdSchema.parse(publisher), id: idOf(member) };
}

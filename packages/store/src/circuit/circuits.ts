/**
 * The circuit breakers of provider accounts, shared by all workers: whether attempts may be made, and which queued
 * acknowledgments are parked until then.
 *
 * 1. While a breaker is open, one attempt is made each probe interval, by all workers together.
 * 2. While it recovers, attempts go out at a rate that grows. In the first minute at most the configured rate a second
 *    goes out. Then the rate doubles each minute, until nothing is parked.
 * 3. Parking costs no attempt, and publishers of one account take turns.
 * 4. A parked acknowledgment is a queued entry. The list of parked ones is only an index: if it is lost, the jobs come back
 *    later, when their delay in the queue ends.
 */
import { type AdResponseId, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import { CIRCUIT_PHASES, CIRCUIT_REASONS, type CircuitPhase, type CircuitReason } from "@adrelay/core";
import type { Redis } from "ioredis";
import { z } from "zod";
import type { DeliveryQueue, PromoteResult } from "../bullmq/queue.ts";
import type { ChannelNotice, ParkPlace } from "../delivery/settlement.ts";
import { idOf, memberOf, type StoreKeys } from "../redis/keys.ts";
import { CLAIM_CODES, type ClaimCode, decodeReply, fieldsOf, type RunScript } from "../redis/scripts.ts";

/** A provider account, shared by publishers with the same URL and key. */
export interface CircuitAccount {
  /** The id of one of its publishers. */
  readonly name: string;
  readonly publishers: readonly PublisherId[];
}

export interface CircuitState {
  readonly phase: CircuitPhase;
  /** Why it opened last; undefined if it never did. */
  readonly reason: CircuitReason | undefined;
  /** Since when it has been in this phase, in milliseconds since 1970; 0 if it never was in another. */
  readonly sinceMs: number;
  /** Meaningful while it is open. */
  readonly nextProbeAtMs: number;
  /** How many queued acknowledgments are parked. */
  readonly parked: number;
}

/** One acknowledgment of one publisher. */
export interface CircuitMember {
  readonly publisher: PublisherId;
  readonly id: AdResponseId;
}

/** The state after a release, and the members that were released. `bringBack` brings their jobs back. */
export interface CircuitRelease extends CircuitState {
  readonly released: readonly CircuitMember[];
}

export interface Parking {
  readonly account: string;
  readonly member: CircuitMember;
  readonly place: ParkPlace;
  readonly notify: ChannelNotice | undefined;
}

export type CircuitReport =
  | { readonly kind: "trip" | "probe_failed"; readonly reason: CircuitReason; readonly holdMs: number }
  /** `probe_now`: a worker has started. The next probe is due an interval after the latest one. */
  | { readonly kind: "probe_succeeded" | "probe_now" };

export interface CircuitRules {
  /** Least time between two probes while the breaker is open. */
  readonly probeIntervalMs: number;
  /** Most attempts per second in the first minute of a recovery. */
  readonly recoveryRatePerSecond: number;
}

export interface CircuitsParts {
  /** Runs scripts fast or not at all: it is called ten times a second, and calls must not pile up. */
  readonly run: RunScript;
  /** Waits for Redis as long as necessary, because what an attempt has learned must be reported. */
  readonly runPatiently: RunScript;
  readonly redis: Redis;
  readonly keys: StoreKeys;
  readonly queue: DeliveryQueue;
  readonly rules: CircuitRules;
}

/** A refused key is probed this many times less often, because only a person can correct it. */
const AUTH_PROBE_FACTOR = 12;
/** A member that was released and not claimed within this time is parked again: its job may not have been delayed yet. */
const LEASE_MS = 2000;

export class Circuits {
  readonly #parts: CircuitsParts;

  constructor(parts: CircuitsParts) {
    this.#parts = parts;
  }

  /** Names of the accounts whose breaker isn't closed, or that have parked acknowledgments. */
  async busy(): Promise<ReadonlySet<string>> {
    return new Set(await this.#parts.redis.smembers(this.#parts.keys.busyCircuits));
  }

  /** The state of an account's breaker; changes nothing. */
  async load({ name, publishers }: CircuitAccount): Promise<CircuitState> {
    const { redis, keys } = this.#parts;
    const [circuit = ""] = keys.forCircuit(name);
    const [fields, ...sizes] = await Promise.all([
      redis.call("HGETALL", circuit).then(fieldsOf),
      ...publishers.map((publisher) => redis.zcard(keys.parkedPrefix + publisher)),
    ]);
    const { phase = "closed", reason, since, next } = storedSchema.parse(fields);
    const parked = sizes.reduce((sum, size) => sum + size, 0);
    return { phase, reason, sinceMs: since, nextProbeAtMs: next, parked };
  }

  /** Releases what may go out now, at most `room` members; see circuit/release.lua. */
  async release({ name, publishers }: CircuitAccount, room: number): Promise<CircuitRelease> {
    const { run, keys, rules } = this.#parts;
    const reply = await run("circuit/release", {
      keys: [...keys.forCircuit(name), ...publishers.map((id) => keys.parkedPrefix + id)],
      args: [name, rules.recoveryRatePerSecond, room, LEASE_MS, ...publishers],
    });
    const [, phase, reason, sinceMs, nextProbeAtMs, parked, released] = releaseSchema.parse(reply);
    return { phase, reason, sinceMs, nextProbeAtMs, parked, released: released.map(parseMember) };
  }

  /** Brings the jobs of released members back from the queue's delay. */
  async bringBack({ name }: CircuitAccount, { released, phase }: CircuitRelease): Promise<void> {
    const { redis, keys, queue } = this.#parts;
    const results = await Promise.all(released.map(({ id }) => queue.promote(id)));
    // While the breaker is closed, no attempt claims. If one still holds the job, the lease brings it back.
    const isDone = (result: PromoteResult | undefined) =>
      result === "ended" || (result === "promoted" && phase === "closed");
    const done = released.filter((_member, at) => isDone(results[at]));
    if (done.length > 0) {
      const [, releasedKey = ""] = keys.forCircuit(name);
      await redis.zrem(releasedKey, ...done.map(nameOf));
    }
  }

  /** Asks whether an attempt may be made now, while the breaker isn't closed; see circuit/claim.lua. */
  async claim(account: string, member: CircuitMember): Promise<{ code: ClaimCode; phase: CircuitPhase }> {
    const { runPatiently, keys, rules } = this.#parts;
    const reply = await runPatiently("circuit/claim", {
      keys: keys.forCircuit(account),
      args: [nameOf(member), rules.recoveryRatePerSecond, rules.probeIntervalMs],
    });
    const [code, phase] = claimSchema.parse(reply);
    return { code: decodeReply(CLAIM_CODES, code), phase };
  }

  /** Parks an acknowledgment. The caller then delays its job in the queue. */
  async park({ account, member, place, notify }: Parking): Promise<void> {
    const { runPatiently, keys } = this.#parts;
    await runPatiently("circuit/park", {
      keys: [...keys.forCircuit(account), keys.parkedPrefix + member.publisher, keys.due],
      args: [
        account,
        memberOf(member.id),
        place.kind === "by_time" ? place.dueAtMs : "",
        notify?.channel ?? "",
        notify?.message ?? "",
      ],
    });
  }

  /** Reports what happened; the breaker may move. Resolves with its phases before and after. */
  async report(
    account: string,
    event: CircuitReport,
  ): Promise<{ before: CircuitPhase; after: CircuitPhase }> {
    const { runPatiently, keys, rules } = this.#parts;
    const reason = "reason" in event ? event.reason : "";
    const waitMs = "reason" in event ? waitAfter(event, rules) : rules.probeIntervalMs;
    const reply = await runPatiently("circuit/report", {
      keys: keys.forCircuit(account),
      args: [account, event.kind, reason, waitMs],
    });
    const [before, after] = z.tuple([phaseSchema, phaseSchema]).parse(reply);
    return { before, after };
  }
}

/** The time until the next probe. */
function waitAfter(
  { kind, reason, holdMs }: Extract<CircuitReport, { reason: CircuitReason }>,
  { probeIntervalMs }: CircuitRules,
): number {
  switch (reason) {
    case "throttled":
      return holdMs;
    case "auth":
      // The first probe comes soon, because the refusal may have been a mistake of the provider.
      return probeIntervalMs * (kind === "trip" ? 1 : AUTH_PROBE_FACTOR);
    case "outage":
      return Math.max(holdMs, probeIntervalMs);
    default:
      return reason satisfies never;
  }
}

const phaseSchema = z.enum(CIRCUIT_PHASES);
const reasonSchema = z
  .enum(CIRCUIT_REASONS)
  .or(z.literal("").transform(() => undefined))
  .optional();
const storedSchema = z.object({
  phase: phaseSchema.optional(),
  reason: reasonSchema,
  since: z.coerce.number().default(0),
  next: z.coerce.number().default(0),
});
const releaseSchema = z.tuple([
  z.number(),
  phaseSchema,
  reasonSchema,
  z.coerce.number(),
  z.coerce.number(),
  z.number(),
  z.array(z.string()),
]);
const claimSchema = z.tuple([z.number(), phaseSchema]);

/** A member's name in Redis. A publisher's id contains no `|`. */
function nameOf({ publisher, id }: CircuitMember): string {
  return `${publisher}|${memberOf(id)}`;
}

function parseMember(name: string): CircuitMember {
  const at = name.indexOf("|");
  return { publisher: publisherIdSchema.parse(name.slice(0, at)), id: idOf(name.slice(at + 1)) };
}

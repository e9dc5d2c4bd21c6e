/**
 * The circuit breakers of provider accounts, shared by all workers: whether attempts may be made, and which queued
 * acknowledgments are parked until then.
 *
 * 1. While a breaker is open, one attempt is made each probe interval, by all workers together.
 * 2. While it recovers, attempts go out at a rate that grows. In the first minute at most the configured rate a second
 *    goes out. Then the rate doubles each minute, until nothing is parked.
 * 3. Parking costs no attempt, and publishers of one account take turns.
 * 4. If only one publisher's acknowledgments opened a breaker, those of the account's other publishers are probes at once.
 * 5. A parked acknowledgment is a queued entry. The list of parked ones is only an index: if it is lost, the jobs come back
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
import { argsOfReport, type CircuitReport, type CircuitRules, waitMaxMs } from "./circuit-reports.ts";

/** A provider account: a URL and a key. */
export interface CircuitAccount {
  /** The same in all processes that have this URL and key, whatever their publishers. Says nothing of the key. */
  readonly id: string;
  /** For operators: the id of one of its publishers. */
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

/** The open breaker of an account that a process doesn't have: another process has another URL or key. */
export interface ForeignCircuit {
  readonly name: string;
  readonly reason: CircuitReason | undefined;
  readonly sinceMs: number;
  /** The process that opened it: its host and pid. */
  readonly by: string;
}

/** How many acknowledgments a worker can take now: in all, and of one publisher. */
export interface CircuitRoom {
  readonly total: number;
  of(publisher: PublisherId): number;
}

/** One acknowledgment of one publisher. */
export interface CircuitMember {
  readonly publisher: PublisherId;
  readonly id: AdResponseId;
}

/** The state after a release, and the members that were released. `bringBack` brings their jobs back. */
export interface CircuitRelease extends CircuitState {
  readonly released: readonly CircuitMember[];
  /** True for the one release that closed the breaker. */
  readonly hasClosed: boolean;
}

export interface Parking {
  /** The account's id; undefined if the publisher is gone, and has none. */
  readonly account: string | undefined;
  readonly member: CircuitMember;
  readonly place: ParkPlace;
  readonly notify: ChannelNotice | undefined;
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
  /** This process, for operators: its host and pid. */
  readonly process: string;
}

/** A member that was released and not claimed within this time is parked again: its job may not have been delayed yet. */
const LEASE_MS = 2000;
/** If no worker has asked about an account for this long, none has it any more. */
const SILENT_MS = 60_000;

export class Circuits {
  readonly #parts: CircuitsParts;

  constructor(parts: CircuitsParts) {
    this.#parts = parts;
  }

  /** Ids of the accounts whose breaker isn't closed, or that have parked acknowledgments. */
  async busy(): Promise<ReadonlySet<string>> {
    return new Set(await this.#parts.redis.smembers(this.#parts.keys.busyCircuits));
  }

  /** The state of an account's breaker; changes nothing. */
  async load({ id, publishers }: CircuitAccount): Promise<CircuitState> {
    const { redis, keys } = this.#parts;
    const [stored, ...sizes] = await Promise.all([
      this.#loadStored(id),
      ...publishers.map((publisher) => redis.zcard(keys.parkedPrefix + publisher)),
    ]);
    const { phase = "closed", reason, since, next } = stored;
    const parked = sizes.reduce((sum, size) => sum + size, 0);
    return { phase, reason, sinceMs: since, nextProbeAtMs: next, parked };
  }

  /** The open breakers of accounts that aren't among these ids, and that a worker still asks about. Changes nothing. */
  async foreign(ids: ReadonlySet<string>): Promise<ForeignCircuit[]> {
    return (await this.#loadForeign(ids)).flatMap(
      ({ isSilent, phase, name, reason, since: sinceMs, by = "" }) =>
        phase === "open" && name !== undefined && !isSilent ? [{ name, reason, sinceMs, by }] : [],
    );
  }

  /** Removes accounts from the busy ones that aren't among these ids, and that no worker has any more. */
  async forgetSilent(ids: ReadonlySet<string>): Promise<void> {
    const silent = (await this.#loadForeign(ids)).filter(({ isSilent }) => isSilent);
    if (silent.length > 0) {
      await this.#parts.redis.srem(this.#parts.keys.busyCircuits, ...silent.map(({ id }) => id));
    }
  }

  async #loadForeign(ids: ReadonlySet<string>) {
    const { redis } = this.#parts;
    const others = [...(await this.busy())].filter((id) => !ids.has(id));
    const [time, ...stored] = await Promise.all([
      others.length > 0 ? redis.time() : [],
      ...others.map(async (id) => ({ id, ...(await this.#loadStored(id)) })),
    ]);
    const nowMs = Number(time[0]) * 1000;
    return stored.map((one) => ({ ...one, isSilent: Math.abs(nowMs - one.asked) > SILENT_MS }));
  }

  /** Releases what may go out now, as far as there is room; see circuit/release.lua. */
  async release({ id, publishers }: CircuitAccount, room: CircuitRoom): Promise<CircuitRelease> {
    const { run, keys, rules } = this.#parts;
    const reply = await run("circuit/release", {
      keys: [...keys.forCircuit(id), ...publishers.map((publisher) => keys.parkedPrefix + publisher)],
      args: [
        id,
        rules.recoveryRatePerSecond,
        room.total,
        LEASE_MS,
        waitMaxMs(rules),
        ...publishers.flatMap((publisher) => [publisher, room.of(publisher)]),
      ],
    });
    const [, phase, reason, sinceMs, nextProbeAtMs, parked, released, hasClosed] = releaseSchema.parse(reply);
    return {
      phase,
      reason,
      sinceMs,
      nextProbeAtMs,
      parked,
      released: released.map(parseMember),
      hasClosed: hasClosed === 1,
    };
  }

  /** Brings the jobs of released members back from the queue's delay. */
  async bringBack(
    { id: account }: Pick<CircuitAccount, "id">,
    { released, phase }: CircuitRelease,
  ): Promise<void> {
    const { redis, keys, queue } = this.#parts;
    const results = await Promise.all(released.map(({ id }) => queue.promote(id)));
    // While the breaker is closed, no attempt claims. If one still holds the job, the lease brings it back.
    const isDone = (result: PromoteResult | undefined) =>
      result === "ended" || (result === "promoted" && phase === "closed");
    const done = released.filter((_member, at) => isDone(results[at]));
    if (done.length > 0) {
      const [, releasedKey = ""] = keys.forCircuit(account);
      await redis.zrem(releasedKey, ...done.map(nameOf));
    }
  }

  /** Asks whether an attempt may be made now, while the breaker isn't closed; see circuit/claim.lua. */
  async claim(
    { id }: Pick<CircuitAccount, "id">,
    member: CircuitMember,
  ): Promise<{ code: ClaimCode; phase: CircuitPhase }> {
    const { runPatiently, keys, rules } = this.#parts;
    const reply = await runPatiently("circuit/claim", {
      keys: keys.forCircuit(id),
      args: [nameOf(member), rules.recoveryRatePerSecond, rules.probeIntervalMs, waitMaxMs(rules)],
    });
    const [code, phase] = claimSchema.parse(reply);
    return { code: decodeReply(CLAIM_CODES, code), phase };
  }

  /** Parks an acknowledgment. The caller then delays its job in the queue. */
  async park({ account, member, place, notify }: Parking): Promise<void> {
    const { runPatiently, keys } = this.#parts;
    await runPatiently("circuit/park", {
      keys: [...keys.forCircuit(account ?? ""), keys.parkedPrefix + member.publisher, keys.due],
      args: [
        account ?? "",
        memberOf(member.id),
        place.kind === "by_time" ? place.dueAtMs : "",
        notify?.channel ?? "",
        notify?.message ?? "",
      ],
    });
  }

  /** Reports what happened; the breaker may move. Resolves with its phases before and after. */
  async report(
    { id, name }: Pick<CircuitAccount, "id" | "name">,
    event: CircuitReport,
  ): Promise<{ before: CircuitPhase; after: CircuitPhase }> {
    const { runPatiently, keys, rules, process } = this.#parts;
    const { reason, waitMs, publisher } = argsOfReport(event, rules);
    const reply = await runPatiently("circuit/report", {
      keys: keys.forCircuit(id),
      args: [
        id,
        event.kind,
        reason ?? "",
        waitMs,
        publisher ?? "",
        name,
        process,
        waitMaxMs(rules),
        rules.probeIntervalMs,
      ],
    });
    const [before, after] = z.tuple([phaseSchema, phaseSchema]).parse(reply);
    return { before, after };
  }

  async #loadStored(id: string): Promise<z.infer<typeof storedSchema>> {
    const { redis, keys } = this.#parts;
    const [circuit = ""] = keys.forCircuit(id);
    return storedSchema.parse(fieldsOf(await redis.call("HGETALL", circuit)));
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
  asked: z.coerce.number().default(0),
  name: z.string().optional(),
  by: z.string().optional(),
});
const releaseSchema = z.tuple([
  z.number(),
  phaseSchema,
  reasonSchema,
  z.coerce.number(),
  z.coerce.number(),
  z.number(),
  z.array(z.string()),
  z.number(),
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

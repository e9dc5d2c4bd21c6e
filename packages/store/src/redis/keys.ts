/**
 * The one place where keys and ids in Redis are built. All keys of a partition share its hash tag, so that a script may
 * touch them all on a Redis Cluster. There is one partition now.
 */
import { hash } from "node:crypto";
import { type AdResponseId, adResponseIdSchema, uuidOfHex } from "@adrelay/contract";

export interface StoreKeys {
  /** The seven keys of every script on entries, in the order that redis/ledger.lua reads. */
  forEntry(member: string): string[];
  /** The same with the first of many entries, then the keys of the other entries: see redis/batch.lua. */
  forEntries(members: readonly string[]): string[];
  /** The keys of a script on bulk replays, in the order that dead-letters/replay-keys.lua reads. */
  forReplay(replayId: string): string[];
  /** The three keys of every script on a circuit breaker, in the order that circuit/circuit.lua reads. */
  forCircuit(account: string): string[];
  /** The six keys of heartbeat/heartbeat.lua, in its order. */
  readonly forHeartbeat: readonly string[];
  /** Hash: the counters; see redis/ledger.lua. */
  readonly totals: string;
  /** Before an entry's member: hash, one ad response. */
  readonly entryPrefix: string;
  /** Sorted set: tasks on the queue that a replay, discard or expiry left, by the time when each is due. */
  readonly outbox: string;
  /** Before a publisher's id: sorted set, its parked acknowledgments. */
  readonly parkedPrefix: string;
  /** Stream: who replayed or discarded what. */
  readonly audit: string;
  /** Before a bulk replay's id: hash, its record. */
  readonly replayPrefix: string;
  /** Set: ids of the bulk replays that run. */
  readonly runningReplays: string;
  /** Set: accounts whose circuit breaker isn't closed, or that have parked acknowledgments. */
  readonly busyCircuits: string;
  /** Hash: a publisher to the last turn that one of its jobs got; see bullmq/turns.lua. */
  readonly turns: string;
  /** Sorted set: ids by the time of their next attempt; see redis/ledger.lua. */
  readonly due: string;
  /** Hash: a running process' id to its record. */
  readonly processes: string;
  readonly dataLoss: string;
  /** Before a process' id: channel, its lifeline. */
  readonly lifelinePrefix: string;
  /** BullMQ's own prefix. */
  readonly queuePrefix: string;
}

export function storeKeys(partition: string): StoreKeys {
  const queuePrefix = `{adrelay:${partition}}`;
  const named = (name: string) => `${queuePrefix}:${name}`;
  const entryPrefix = named("e:");
  const outbox = named("payload-work");
  const shared = ["awaiting", "queued", "dead", "gauges", "totals"].map(named);
  const forEntry = (member: string) => [entryPrefix + member, ...shared, outbox];
  const audit = named("audit");
  const replayPrefix = named("replay:");
  const runningReplays = named("replays-running");
  const busyCircuits = named("gates");
  return {
    forEntry,
    forEntries: ([first = "", ...others]) => [
      ...forEntry(first),
      ...others.map((member) => entryPrefix + member),
    ],
    forReplay: (id) => [...forEntry(""), audit, replayPrefix + id, named("replays"), runningReplays],
    forCircuit: (account) => [named(`gate:${account}`), named(`gate:${account}:released`), busyCircuits],
    forHeartbeat: ["heartbeat", "processes", "data-loss", "queued", "dead", "awaiting"].map(named),
    totals: named("totals"),
    entryPrefix,
    outbox,
    parkedPrefix: named("parked:"),
    audit,
    replayPrefix,
    runningReplays,
    busyCircuits,
    turns: named("turns"),
    due: named("queued:due"),
    processes: named("processes"),
    dataLoss: named("data-loss"),
    lifelinePrefix: named("lifeline:"),
    queuePrefix,
  };
}

/** An id as it is written in keys and indexes: without its dashes, to save memory. */
export function memberOf(id: AdResponseId): string {
  return id.replaceAll("-", "");
}

/** The id that a member was made from. */
export function idOf(member: string): AdResponseId {
  return adResponseIdSchema.parse(uuidOfHex(member));
}

export const QUEUE_NAME = "acknowledgments";

/** BullMQ keeps a job's name in a field of the payload. It holds the fingerprint of the acknowledgment's text. */
export const FINGERPRINT_FIELD = "name";

/**
 * The id of an ad response's job. It is always the same, so that a repeat meets the same job (invariant 2). It is
 * hashed, because BullMQ accepts neither a `:` in a job's id nor an id of digits only.
 */
export function jobIdOf(id: AdResponseId): string {
  return `a${hash("sha256", id, "base64url").slice(0, 27)}`;
}

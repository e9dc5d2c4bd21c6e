/**
 * The one place where keys and ids in Redis are built. All keys of a partition share its hash tag, so that a script may
 * touch them all on a Redis Cluster. There is one partition now.
 */
import { hash } from "node:crypto";
import { type AdResponseId, adResponseIdSchema, uuidOfHex } from "@adrelay/contract";

/** What an operator does with many dead letters, or with many queued acknowledgments. */
export type BulkKind = "replay" | "discard" | "discard_queued";

export interface StoreKeys {
  /** The seven keys of every script on entries, in the order that redis/ledger.lua reads. */
  forEntry(member: string): string[];
  /** The same with the first of many entries, then the keys of the other entries: see redis/batch.lua. */
  forEntries(members: readonly string[]): string[];
  /** The keys of a script on bulk replays or bulk discards, in the order that dead-letters/bulk-record.lua reads. */
  forBulk(kind: BulkKind, id: string): string[];
  /** The three keys of every script on a circuit breaker, in the order that circuit/circuit.lua reads. */
  forCircuit(account: string): string[];
  /** The six keys of heartbeat/heartbeat.lua, in its order. */
  readonly forHeartbeat: readonly string[];
  /** Hash: the latest heartbeat of any process. */
  readonly heartbeat: string;
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
  /** Before the id of a bulk replay or a bulk discard: hash, its record. */
  readonly bulkPrefix: Readonly<Record<BulkKind, string>>;
  /** Set: ids of those that run. */
  readonly runningBulk: Readonly<Record<BulkKind, string>>;
  /** Sets: ids of those that gateways of older versions started. */
  readonly olderBulk: Readonly<Record<BulkKind, readonly string[]>>;
  /** Set: accounts whose circuit breaker isn't closed, or that have parked acknowledgments. */
  readonly busyCircuits: string;
  /** Hash: a publisher to the last turn that one of its jobs got; see bullmq/turns.lua. */
  readonly turns: string;
  /** Sorted set: ids by the time when they were queued. */
  readonly queued: string;
  /** Sorted set: ids by the time of their next attempt; see redis/ledger.lua. */
  readonly due: string;
  /** Before a pointer of a turn: string, the turn's member. */
  readonly turnPointerPrefix: string;
  /** Hash: a turn; see journal/drop-turn.lua. */
  turn(member: string): string;
  /** List: the pieces of a turn's text. */
  turnText(member: string): string;
  /** Hash: a running process' id to its record. */
  readonly processes: string;
  readonly dataLoss: string;
  /** Hash: what is known of the rewrites of Redis' files; see maintenance/plan-rewrite.lua. */
  readonly rewrites: string;
  /** Sorted set: callers' keys by the time of their latest use. */
  readonly keyUses: string;
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
  // Both kinds of discards are listed and shown together.
  const bulkPrefix = {
    replay: named("replay:"),
    discard: named("discard:"),
    discard_queued: named("discard:"),
  };
  const bulkList = {
    replay: named("replays"),
    discard: named("discards"),
    discard_queued: named("discards"),
  };
  // Workers of older versions don't know each part of a filter. They must not advance a change with one that they don't know,
  // so it is in another set than theirs.
  const runningBulk = {
    replay: named("replays-running:3"),
    discard: named("discards-running:2"),
    discard_queued: named("queued-discards-running"),
  };
  const olderBulk = {
    replay: [named("replays-running"), named("replays-running:2")],
    discard: [named("discards-running")],
    discard_queued: [],
  };
  const busyCircuits = named("gates");
  return {
    forEntry,
    forEntries: ([first = "", ...others]) => [
      ...forEntry(first),
      ...others.map((member) => entryPrefix + member),
    ],
    forBulk: (kind, id) => [...forEntry(""), audit, bulkPrefix[kind] + id, bulkList[kind], runningBulk[kind]],
    forCircuit: (account) => [named(`gate:${account}`), named(`gate:${account}:released`), busyCircuits],
    forHeartbeat: ["heartbeat", "processes", "data-loss", "queued", "dead", "awaiting"].map(named),
    heartbeat: named("heartbeat"),
    totals: named("totals"),
    entryPrefix,
    outbox,
    parkedPrefix: named("parked:"),
    audit,
    bulkPrefix,
    runningBulk,
    olderBulk,
    busyCircuits,
    turns: named("turns"),
    queued: named("queued"),
    due: named("queued:due"),
    turnPointerPrefix: named("awaiting:by:"),
    turn: (member) => named(`awaiting:turn:${member}`),
    turnText: (member) => named(`awaiting:text:${member}`),
    processes: named("processes"),
    dataLoss: named("data-loss"),
    rewrites: named("rewrites"),
    keyUses: named("key-uses"),
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

import { randomUUID } from "node:crypto";
import {
  type AdResponseId,
  adAckIdSchema,
  adResponseIdSchema,
  type DeliveryJob,
  publisherIdSchema,
} from "@adrelay/contract";
import type { EntryEvent, EntryState } from "@adrelay/core";
import { startTestRedis } from "@adrelay/dev-servers";
import { Redis, type RedisOptions } from "ioredis";
import { afterAll } from "vitest";
import type { DeadFilter } from "../src/dead-letters/listing.ts";
import { AttemptStarter } from "../src/delivery/attempt-start.ts";
import { BookingRetry, JobCompleter, type SettledAttempt } from "../src/delivery/job-completer.ts";
import type { Settlement } from "../src/delivery/settlement.ts";
import { Sweep } from "../src/maintenance/sweep.ts";
import { assembleStore, makeParts, type StoreOptions } from "../src/open-store.ts";

export const publisher = publisherIdSchema.parse("acme");
export const LONG_MS = 60_000;
export const EVERYTHING: DeadFilter = {
  publisher: undefined,
  reason: undefined,
  code: undefined,
  sinceMs: undefined,
  untilMs: undefined,
};

/** A Redis for the tests of one file, and a connection to it. Both end after the last test. */
export async function openTestRedis(options: Pick<RedisOptions, "maxRetriesPerRequest"> = {}) {
  const server = await startTestRedis();
  const redis = new Redis(server.url, options);
  afterAll(async () => {
    redis.disconnect();
    await server.dispose();
  });
  return { server, redis };
}

/** A store in its own partition, with the parts that a worker has. */
export type StoreFixture = ReturnType<typeof openTestStore>;

export function openTestStore(redis: Redis, more: Partial<StoreOptions> = {}) {
  const options = { redis, recordRetentionMs: LONG_MS, turnGraceMs: 0, partition: randomUUID(), ...more };
  const { partition } = options;
  // Many stores share a test's connection, and each listens to it.
  redis.setMaxListeners(10_000);
  const parts = makeParts(options);
  const store = assembleStore(parts);
  const sweep = new Sweep(parts);
  const starter = new AttemptStarter(parts.run, parts.keys);
  const settled: SettledAttempt[] = [];
  const completer = new JobCompleter({
    ...parts,
    bookingRetry: new BookingRetry(parts),
    onSettled: (attempt) => settled.push(attempt),
  });
  /** Begins its attempt as a worker does, for a job that the queue holds with this text. */
  const begin = async (id: AdResponseId, textHash = "hash", job: Partial<DeliveryJob> = {}) => {
    const payloadKey = parts.queue.payloadKey(id);
    await redis.hset(payloadKey, "name", textHash);
    return starter.begin({ job: { ...jobOf(id), ...job }, textHash, payloadKey, prefetched: undefined });
  };
  const attemptsOf = async (id: AdResponseId) => {
    const entry = await store.acknowledgments.find(id);
    return entry !== undefined && "attempts" in entry ? entry.attempts : 0;
  };
  const settle = async (id: AdResponseId, event: Settlement["event"], more: SettlementDetails = {}) =>
    completer.settle(settlementOf(id, event, { attemptsBefore: await attemptsOf(id), ...more }));
  return {
    ...store,
    store,
    parts,
    partition,
    find: store.acknowledgments.find,
    sweepMissed: (limit: number) => sweep.sweepMissed(limit),
    sweepExpired: (limit: number, ageMs: number) => sweep.sweepExpired(limit, ageMs),
    starter,
    completer,
    settled,
    begin,
    settle,
    newId,
    key: (name: string) => `{adrelay:${partition}}:${name}`,
  };
}

export function newId(): AdResponseId {
  return adResponseIdSchema.parse(randomUUID());
}

export function jobOf(id: AdResponseId): DeliveryJob {
  return { v: 1, adResponseId: id, adAckId: adAckIdSchema.parse(id), publisher, body: "{}", requestId: "r" };
}

/** What may differ from test to test. */
export interface SettlementDetails {
  readonly attemptsBefore?: number;
  readonly code?: string;
  readonly durationMs?: number;
  /** Of a retry: how long it waits. */
  readonly delayMs?: number;
  readonly reason?: Extract<Settlement, { event: "die" }>["reason"];
  readonly providerError?: string | undefined;
}

export function settlementOf(
  id: AdResponseId,
  event: Settlement["event"],
  { reason = "http_400", providerError = "some_code", delayMs = 1000, ...details }: SettlementDetails = {},
): Settlement {
  const base = { id, code: "code", durationMs: 5, attemptsBefore: 0, notify: undefined, ...details };
  switch (event) {
    case "deliver":
      return { ...base, event, verdict: "ok", providerAckId: undefined };
    case "refuse":
      return { ...base, event };
    case "retry":
    case "ambiguous":
      return { ...base, event, next: { kind: "after_delay", delayMs }, isCounted: true, providerError };
    case "die":
      return { ...base, event, reason, sizeBytes: 42, providerError };
    default:
      return event satisfies never;
  }
}

/** Carries an event out, as the parts of the relay do. */
export async function fire(fixture: StoreFixture, id: AdResponseId, event: EntryEvent): Promise<void> {
  const { injections, deadLetters } = fixture;
  switch (event) {
    case "record_filled":
      await injections.record({ id, publisher, outcome: "ok", deadlineMs: 0 });
      return;
    case "record_unfilled":
      await injections.record({ id, publisher, outcome: "no_fill" });
      return;
    case "record_abandoned":
      await injections.record({ id, publisher, outcome: "abandoned" });
      return;
    case "accept":
      await fixture.begin(id);
      return;
    case "deliver":
    case "refuse":
    case "retry":
    case "die":
      await fixture.settle(id, event);
      return;
    case "miss":
      await fixture.sweepMissed(1000);
      return;
    case "replay":
      await deadLetters.replay(id, "alice");
      return;
    case "discard": {
      const discarded = await deadLetters.discard(id, "alice", "gone stale");
      // The text is removed after the booking; a test must not meet it half removed.
      await ("followed" in discarded ? discarded.followed : undefined);
      return;
    }
    case "erase":
      await fixture.store.erasures.erase(id, { by: "alice", reason: "the user asked" });
      return;
    case "expire":
      await fixture.sweepExpired(1000, 0);
      return;
    default:
      event satisfies never;
  }
}

/** Events that lead a fresh id into each state. */
const PATHS: Record<EntryState, readonly EntryEvent[]> = {
  absent: [],
  awaiting: ["record_filled"],
  queued: ["record_filled", "accept"],
  delivered: ["record_filled", "accept", "deliver"],
  refused: ["record_filled", "accept", "refuse"],
  dead: ["record_filled", "accept", "die"],
  missed: ["record_filled", "miss"],
  discarded: ["record_filled", "accept", "die", "discard"],
  expired: ["record_filled", "accept", "die", "expire"],
  unacknowledgeable: ["record_unfilled"],
  abandoned: ["record_abandoned"],
};

export async function newIdIn(fixture: StoreFixture, state: EntryState): Promise<AdResponseId> {
  const id = newId();
  for (const step of PATHS[state]) {
    await fire(fixture, id, step);
  }
  return id;
}

/** What counts against the quotas of memory, as publisher|quota to bytes. */
export async function usedBytes({
  snapshot,
}: Pick<StoreFixture, "snapshot">): Promise<Record<string, number>> {
  const { storedBytes } = await snapshot();
  return Object.fromEntries(
    storedBytes.map(({ publisher, label, value }) => [`${publisher}|${label}`, value]),
  );
}

/** The same, from the entries themselves. */
export async function countEntryBytes(
  redis: Redis,
  { key }: Pick<StoreFixture, "key">,
): Promise<Record<string, number>> {
  const sums: Record<string, number> = {};
  for (const entryKey of await redis.keys(key("e:*"))) {
    const { s: state = "", p: owner = "", b: stored = "", r: recorded } = await redis.hgetall(entryKey);
    if (state === "queued" || state === "dead") {
      const quota = recorded === undefined ? "unknown_bytes" : `${state}_bytes`;
      const bytes = Number(/[ku](\d+)$/.exec(stored)?.[1]);
      sums[`${owner}|${quota}`] = (sums[`${owner}|${quota}`] ?? 0) + bytes;
    }
  }
  return sums;
}

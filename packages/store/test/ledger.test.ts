/**
 * The ledger on a real Redis: every state with every event compared with the rules of core, exact counts, and the
 * balance of the counters over random walks.
 */
import type { AdResponseId } from "@adrelay/contract";
import { decideTransition, ENTRY_EVENTS, ENTRY_STATES, type EntryState } from "@adrelay/core";
import { eventually } from "@adrelay/testkit";
import fc from "fast-check";
import { Redis } from "ioredis";
import { expect, test } from "vitest";
import { acknowledgedOf, type LedgerSnapshot } from "../src/index.ts";
import {
  countEntryBytes,
  fire,
  jobOf,
  LONG_MS,
  newId,
  newIdIn,
  openTestRedis,
  openTestStore,
  publisher,
  type StoreFixture,
  settlementOf,
  usedBytes,
} from "./store-fixture.ts";

const { server, redis } = await openTestRedis();

const INJECTION = { publisher, outcome: "ok", deadlineMs: LONG_MS } as const;

const setup = (): StoreFixture => openTestStore(redis);

async function stateOf({ find }: StoreFixture, id: AdResponseId): Promise<EntryState> {
  return (await find(id))?.state ?? "absent";
}

function countOf(snapshot: LedgerSnapshot, name: string): number {
  return (snapshot.totals.get(name) ?? []).reduce((sum, { value }) => sum + value, 0);
}

function expectBalance(snapshot: LedgerSnapshot): void {
  const filled = (snapshot.totals.get("recorded") ?? []).filter(({ label }) => label === "ok");
  const booked = filled.reduce((sum, { value }) => sum + value, 0) + countOf(snapshot, "unknown");
  expect(snapshot.states.reduce((sum, { value }) => sum + value, 0)).toBe(booked);
  expect(snapshot.states.every(({ value }) => value >= 0)).toBe(true);
}

test.each(ENTRY_STATES.flatMap((state) => ENTRY_EVENTS.map((event) => [state, event] as const)))(
  "in state %s the event %s follows the rules of core",
  async (state, event) => {
    const fixture = setup();
    const id = await newIdIn(fixture, state);
    expect(await stateOf(fixture, id)).toBe(state);
    const before = await fixture.snapshot();
    await fire(fixture, id, event);
    const transition = decideTransition(state, event);
    expect(await stateOf(fixture, id)).toBe(transition.kind === "moved" ? transition.to : state);
    const after = await fixture.snapshot();
    if (transition.kind !== "moved") {
      expect(after.totals).toEqual(before.totals);
    }
    expectBalance(after);
    expect(await usedBytes(fixture)).toEqual(await countEntryBytes(redis, fixture));
  },
);

test("the counters balance after any walk of many ad responses", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(4), fc.constantFrom(...ENTRY_EVENTS)), { maxLength: 60 }),
      async (steps) => {
        const fixture = setup();
        const ids = Array.from({ length: 5 }, () => newId());
        for (const [at, event] of steps) {
          await fire(fixture, ids[at] ?? newId(), event);
          expectBalance(await fixture.snapshot());
        }
      },
    ),
    { numRuns: 25 },
  );
});

test("an acknowledgment whose text the queue does not hold is not booked", async () => {
  const { starter, find, key } = setup();
  const id = newId();
  const payloadKey = key("payload");
  const begin = () => starter.begin({ job: jobOf(id), textHash: "hash", payloadKey, prefetched: undefined });
  expect(await begin()).toEqual({ kind: "not_accepted", why: "payload_missing" });
  await redis.hset(payloadKey, "name", "another");
  expect(await begin()).toEqual({ kind: "not_accepted", why: "conflict" });
  expect(await find(id)).toBeUndefined();
});

test("two workers that book one delivery count it once", async () => {
  const { store, begin, settle } = setup();
  const id = newId();
  await begin(id);
  const booked = await Promise.all([settle(id, "deliver"), settle(id, "deliver"), settle(id, "deliver")]);
  expect(booked.sort()).toEqual(["booked", "same", "same"]);
  expect(countOf(await store.snapshot(), "delivered")).toBe(1);
});

test("attempts of one turn are booked together, and each has its own reply", async () => {
  const { store, begin, settle } = setup();
  const ids = Array.from({ length: 100 }, () => newId());
  await Promise.all(ids.slice(10).map((id) => begin(id)));
  const begun = await Promise.all(ids.slice(10).map((id) => begin(id)));
  expect(begun.every(({ kind }) => kind === "queued")).toBe(true);
  expect(countOf(await store.snapshot(), "accepted")).toBe(90);
  const events = ["deliver", "retry", "die", "refuse"] as const;
  const booked = await Promise.all(ids.map((id, at) => settle(id, events[at % 4] ?? "deliver")));
  expect(booked.slice(0, 10).every((code) => code === "illegal")).toBe(true);
  expect(booked.slice(10).every((code) => code === "booked")).toBe(true);
  const snapshot = await store.snapshot();
  expect(countOf(snapshot, "delivered")).toBe(22);
  expect(countOf(snapshot, "refused")).toBe(23);
  expect(countOf(snapshot, "dead")).toBe(23);
  expectBalance(snapshot);
});

test("an entry that can't be read affects no other attempt of the turn", async () => {
  const { begin, settle, partition } = setup();
  const ids = [newId(), newId(), newId()];
  await Promise.all(ids.map((id) => begin(id)));
  const broken = `{adrelay:${partition}}:e:${ids[1]?.replaceAll("-", "")}`;
  await redis.del(broken);
  await redis.set(broken, "not a hash");
  const begun = await Promise.allSettled(ids.map((id) => begin(id)));
  expect(begun.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const settled = await Promise.allSettled(ids.map((id) => settle(id, "deliver")));
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("many concurrent sweeps miss each deadline once", async () => {
  const { store, sweepMissed } = setup();
  const ids = Array.from({ length: 300 }, () => newId());
  await Promise.all(
    ids.map((id) => store.injections.record({ id, publisher, outcome: "ok", deadlineMs: 0 })),
  );
  await Promise.all(Array.from({ length: 20 }, () => sweepMissed(50)));
  expect(countOf(await store.snapshot(), "missed")).toBe(300);
});

test("a late acknowledgment leaves missed and is counted as late", async () => {
  const { store, begin, sweepMissed } = setup();
  const id = newId();
  await store.injections.record({ id, publisher, outcome: "ok", deadlineMs: 0 });
  await sweepMissed(10);
  expect((await begin(id)).kind).toBe("queued");
  const snapshot = await store.snapshot();
  expect(countOf(snapshot, "missed")).toBe(1);
  expect(countOf(snapshot, "late")).toBe(1);
  expect(await store.acknowledgments.find(id)).toMatchObject({ state: "queued", isLate: true });
});

test("a replayed dead letter starts with fresh attempts and a fresh age", async () => {
  const { store, deadLetters, begin, settle } = setup();
  const id = newId();
  await begin(id);
  await settle(id, "retry");
  await settle(id, "retry");
  await settle(id, "die");
  expect(await store.acknowledgments.find(id)).toMatchObject({
    failedAttempts: 2,
    attempts: 3,
    death: { reason: "http_400" },
  });
  const replayed = await deadLetters.replay(id, "alice");
  expect(await store.acknowledgments.find(id)).toMatchObject({
    state: "queued",
    failedAttempts: 0,
    attempts: 3,
  });
  expect(replayed).toMatchObject({ kind: "booked" });
});

test("a queued entry shows the provider's own code of its last attempt, and no older one", async () => {
  const { store, deadLetters, begin, settle, key } = setup();
  const id = newId();
  await begin(id);
  const shown = async () => {
    const entry = await store.acknowledgments.find(id);
    return entry?.state === "queued" ? entry.providerError : entry?.state;
  };
  await settle(id, "retry", { providerError: "closed_today" });
  expect(await shown()).toBe("closed_today");
  await settle(id, "retry", { providerError: "" });
  expect(await shown()).toBeUndefined();
  await settle(id, "retry", { providerError: "closed_today" });
  await settle(id, "die");
  await deadLetters.replay(id, "alice");
  expect(await shown()).toBeUndefined();
  await settle(id, "retry", { providerError: "closed_today" });
  await settle(id, "deliver");
  expect(await redis.hexists(key(`e:${id.replaceAll("-", "")}`), "y")).toBe(0);
});

test("a retry whose booking is sent again because its reply got lost counts once", async () => {
  const { store, begin, settle } = setup();
  const id = newId();
  await begin(id);
  expect(await settle(id, "retry", { attemptsBefore: 0 })).toBe("booked");
  expect(await settle(id, "retry", { attemptsBefore: 0 })).toBe("same");
  expect(await store.acknowledgments.find(id)).toMatchObject({ attempts: 1, failedAttempts: 1 });
});

test("a death that is sent again after a replay changes nothing", async () => {
  const { store, deadLetters, begin, settle } = setup();
  const id = newId();
  await begin(id);
  expect(await settle(id, "die", { attemptsBefore: 0 })).toBe("booked");
  await deadLetters.replay(id, "alice");
  expect(await settle(id, "die", { attemptsBefore: 0 })).toBe("same");
  expect(await store.acknowledgments.find(id)).toMatchObject({ state: "queued" });
});

test("only the latest attempts are kept and all are counted", async () => {
  const { store, begin, settle } = setup();
  const id = newId();
  await begin(id);
  for (let attempt = 1; attempt <= 25; attempt += 1) {
    await settle(id, "retry", { code: `http_${500 + attempt}`, durationMs: attempt });
  }
  const entry = acknowledgedOf((await store.acknowledgments.find(id)) ?? fail());
  expect(entry?.attempts).toBe(25);
  expect(entry?.attemptLog).toHaveLength(20);
  expect(entry?.attemptLog[0]).toMatchObject({ code: "http_506", durationMs: 6, outcome: "retry" });
  expect(entry?.attemptLog.at(-1)).toMatchObject({ code: "http_525", durationMs: 25 });
});

test("an ended entry expires and its counts stay", async () => {
  const brief = openTestStore(redis, { recordRetentionMs: 50 });
  const id = newId();
  await brief.begin(id);
  await brief.completer.settle(settlementOf(id, "deliver"));
  await eventually(async () => expect(await brief.find(id)).toBeUndefined());
  expect(await brief.settle(id, "deliver")).toBe("illegal");
  const snapshot = await brief.snapshot();
  expect(countOf(snapshot, "delivered")).toBe(1);
  expectBalance(snapshot);
});

test.each([
  ["delivered", 50],
  ["unacknowledgeable", 50],
  ["refused", LONG_MS],
  ["abandoned", LONG_MS],
  ["missed", LONG_MS],
  ["discarded", LONG_MS],
  ["expired", LONG_MS],
] as const)("an entry that is %s is kept for at most %d ms", async (state, retentionMs) => {
  const fixture = openTestStore(redis, { recordRetentionMs: LONG_MS, deliveredRetentionMs: 50 });
  const id = await newIdIn(fixture, state);
  const leftMs = await redis.pttl(fixture.parts.keys.entryPrefix + id.replaceAll("-", ""));
  expect(leftMs).toBeLessThanOrEqual(retentionMs);
  expect(leftMs > 50).toBe(retentionMs > 50);
});

test("a record tells its deadline, and a repeat tells the first one's", async () => {
  const { injections, find } = setup();
  const id = newId();
  const first = await injections.record({ id, publisher, outcome: "ok", deadlineMs: 5000 });
  expect(await injections.record({ id, publisher, outcome: "ok", deadlineMs: 9000 })).toEqual({
    ...first,
    isNew: false,
  });
  expect(first).toEqual({ isNew: true, deadlineAtMs: (await find(id))?.injection?.deadlineAtMs });
  const unfilled = await injections.record({ id: newId(), publisher, outcome: "no_fill" });
  expect(unfilled).toEqual({ isNew: true, deadlineAtMs: undefined });
});

test("an ambiguous attempt is booked like a retry and shows as ambiguous in the log", async () => {
  const { store, begin, settle } = setup();
  const id = newId();
  await begin(id);
  expect(await settle(id, "ambiguous", { code: "timeout" })).toBe("booked");
  expect(await store.acknowledgments.find(id)).toMatchObject({
    state: "queued",
    failedAttempts: 1,
    attemptLog: [{ code: "timeout", outcome: "ambiguous" }],
  });
});

test.each([
  ["queued", "deliver"],
  ["queued", "refuse"],
  ["queued", "retry"],
  ["queued", "die"],
  ["dead", "deliver"],
] as const)("a full Redis books the outcome of an attempt: %s, then %s", async (state, event) => {
  const fixture = setup();
  const id = await newIdIn(fixture, state);
  await redis.config("SET", "maxmemory", "1");
  try {
    await expect(redis.set("key", "value")).rejects.toThrow("OOM");
    expect(await fixture.settle(id, event)).toBe("booked");
  } finally {
    await redis.config("SET", "maxmemory", "0");
  }
  const transition = decideTransition(state, event);
  expect(transition).toMatchObject({ kind: "moved", to: await stateOf(fixture, id) });
  expectBalance(await fixture.snapshot());
});

test("scripts that Redis has forgotten are sent again", async () => {
  const { store } = setup();
  const [before, after] = [newId(), newId()];
  expect(await store.injections.record({ ...INJECTION, id: before })).toMatchObject({ isNew: true });
  await redis.script("FLUSH");
  expect(await store.injections.record({ ...INJECTION, id: after })).toMatchObject({ isNew: true });
  expect(await store.injections.record({ ...INJECTION, id: before })).toMatchObject({ isNew: false });
});

test("a read after a recording sees it, also on a restarted Redis", async () => {
  const impatient = new Redis(server.url, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  // ioredis reports each attempt to reconnect.
  impatient.on("error", () => {});
  try {
    await hears(impatient, "ready");
    const store = openTestStore(impatient);
    const record = (id: AdResponseId) => store.injections.record({ ...INJECTION, id });
    expect(await record(newId())).toMatchObject({ isNew: true });
    const isAway = hears(impatient, "close");
    await server.crash();
    await isAway;
    await expect(record(newId())).rejects.toThrow();
    const isBack = hears(impatient, "ready");
    await server.restart();
    await isBack;
    const id = newId();
    const recorded = record(id);
    // The record leaves when this turn ends.
    await new Promise((resolve) => setImmediate(resolve));
    expect(await store.acknowledgments.find(id)).toMatchObject({ state: "awaiting" });
    expect(await recorded).toMatchObject({ isNew: true });
  } finally {
    impatient.disconnect();
  }
});

test("a crash of Redis loses no booked transition", async () => {
  const { store, begin } = setup();
  const ids = Array.from({ length: 50 }, () => newId());
  await Promise.all(ids.map((id) => begin(id)));
  await server.crash();
  await server.restart();
  await eventually(async () => expect(await redis.ping()).toBe("PONG"));
  expect(countOf(await store.snapshot(), "accepted")).toBe(50);
});

/** Resolves at an event. Unlike `events.once`, errors in between don't reject it. */
function hears(client: Redis, event: "close" | "ready"): Promise<void> {
  return new Promise((resolve) => client.once(event, () => resolve()));
}

function fail(): never {
  throw new TypeError("there is an entry");
}

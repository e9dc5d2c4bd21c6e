/**
 * The ledger on a real Redis: every state with every event against the rules of core, exact counts, and
 * the books' balance over random walks.
 */
import { once } from "node:events";
import type { AdResponseId } from "@adrelay/contract";
import { decideTransition, ENTRY_EVENTS, ENTRY_STATES, type EntryState } from "@adrelay/core";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Ledger, type LedgerSnapshot } from "../src/index.ts";
import { type BooksFixture, fire, LONG_MS, openBooks, PATHS, publisher } from "./books-fixture.ts";

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

const INJECTION = { publisher, outcome: "ok", deadlineMs: LONG_MS } as const;

const setup = (): BooksFixture => openBooks(redis);

async function stateOf(ledger: Ledger, id: AdResponseId): Promise<EntryState> {
  return (await ledger.find(id))?.state ?? "absent";
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
  "in state %s the event %s does what the rules say",
  async (state, event) => {
    const fixture = setup();
    const id = fixture.newId();
    for (const step of PATHS[state]) {
      await fire(fixture, id, step);
    }
    expect(await stateOf(fixture.ledger, id)).toBe(state);
    const before = await fixture.ledger.snapshot();
    await fire(fixture, id, event);
    const transition = decideTransition(state, event);
    expect(await stateOf(fixture.ledger, id)).toBe(transition.kind === "moved" ? transition.to : state);
    const after = await fixture.ledger.snapshot();
    if (transition.kind !== "moved") {
      expect(after.totals).toEqual(before.totals);
    }
    expectBalance(after);
  },
);

test("the books balance after any walk of many ad responses", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(4), fc.constantFrom(...ENTRY_EVENTS)), { maxLength: 60 }),
      async (steps) => {
        const fixture = setup();
        const ids = Array.from({ length: 5 }, () => fixture.newId());
        for (const [at, event] of steps) {
          await fire(fixture, ids[at] ?? fixture.newId(), event);
          expectBalance(await fixture.ledger.snapshot());
        }
      },
    ),
    { numRuns: 25 },
  );
});

test("an acknowledgment whose text the queue does not hold is not booked", async () => {
  const { ledger, newId, partition } = setup();
  const id = newId();
  const payload = { key: `{adrelay:${partition}}:payload`, field: "name" };
  expect(await ledger.begin({ id, publisher, textHash: "hash", payload })).toEqual({
    kind: "payload_missing",
  });
  await redis.hset(payload.key, payload.field, "another");
  expect(await ledger.begin({ id, publisher, textHash: "hash", payload })).toEqual({ kind: "conflict" });
  expect(await ledger.find(id)).toBeUndefined();
});

test("two workers that book one delivery count it once", async () => {
  const { ledger, newId, accept, settle } = setup();
  const id = newId();
  await accept(id);
  const booked = await Promise.all([settle(id, "deliver"), settle(id, "deliver"), settle(id, "deliver")]);
  expect(booked.sort()).toEqual(["booked", "same", "same"]);
  expect(countOf(await ledger.snapshot(), "delivered")).toBe(1);
});

test("attempts of one turn are booked together, each with an answer of its own", async () => {
  const { ledger, newId, accept, settle } = setup();
  const ids = Array.from({ length: 100 }, () => newId());
  await Promise.all(ids.slice(10).map((id) => accept(id)));
  const stood = await Promise.all(ids.slice(10).map((id) => accept(id)));
  expect(stood.every(({ kind }) => kind === "repeat")).toBe(true);
  const events = ["deliver", "retry", "die", "refuse"] as const;
  const booked = await Promise.all(ids.map((id, at) => settle(id, events[at % 4] ?? "deliver")));
  expect(booked.slice(0, 10).every((code) => code === "illegal")).toBe(true);
  expect(booked.slice(10).every((code) => code === "booked")).toBe(true);
  const snapshot = await ledger.snapshot();
  expect(countOf(snapshot, "delivered")).toBe(22);
  expect(countOf(snapshot, "refused")).toBe(23);
  expect(countOf(snapshot, "dead")).toBe(23);
  expectBalance(snapshot);
});

test("an entry that can't be read spoils no other's attempt in the same turn", async () => {
  const { newId, accept, settle, partition } = setup();
  const ids = [newId(), newId(), newId()];
  await Promise.all(ids.map((id) => accept(id)));
  const broken = `{adrelay:${partition}}:e:${ids[1]?.replaceAll("-", "")}`;
  await redis.del(broken);
  await redis.set(broken, "not a hash");
  const begun = await Promise.allSettled(ids.map((id) => accept(id)));
  expect(begun.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  const settled = await Promise.allSettled(ids.map((id) => settle(id, "deliver")));
  expect(settled.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("many sweeps at once miss each deadline once", async () => {
  const { ledger, newId } = setup();
  const ids = Array.from({ length: 300 }, () => newId());
  await Promise.all(ids.map((id) => ledger.recordInjection({ id, publisher, outcome: "ok", deadlineMs: 0 })));
  await Promise.all(Array.from({ length: 20 }, () => ledger.sweepMissed(50)));
  expect(countOf(await ledger.snapshot(), "missed")).toBe(300);
});

test("a late acknowledgment leaves missed and is counted as late", async () => {
  const { ledger, newId, accept } = setup();
  const id = newId();
  await ledger.recordInjection({ id, publisher, outcome: "ok", deadlineMs: 0 });
  await ledger.sweepMissed(10);
  expect((await accept(id)).kind).toBe("accepted_late");
  const snapshot = await ledger.snapshot();
  expect(countOf(snapshot, "missed")).toBe(1);
  expect(countOf(snapshot, "late")).toBe(1);
  expect(await ledger.find(id)).toMatchObject({ state: "queued", isLate: true, endedAtMs: undefined });
});

test("a replayed dead letter starts with fresh attempts and a fresh age", async () => {
  const { ledger, deadLetters, newId, accept, settle } = setup();
  const id = newId();
  await accept(id);
  await settle(id, "retry");
  await settle(id, "retry");
  await settle(id, "die");
  expect(await ledger.find(id)).toMatchObject({ failedAttempts: 2, attempts: 3, deadReason: "http_400" });
  const replayed = await deadLetters.replay(id, "alice");
  expect(await ledger.find(id)).toMatchObject({
    state: "queued",
    failedAttempts: 0,
    attempts: 3,
    deadReason: undefined,
  });
  const [work, ...others] = await deadLetters.takePayloadWork(10, LONG_MS);
  expect(replayed).toEqual({ kind: "booked", work });
  expect(work).toMatchObject({ action: "requeue", id });
  await deadLetters.finishPayloadWork(...(work === undefined ? [] : [work]), ...others);
  expect((await ledger.snapshot()).payloadWork).toBe(0);
});

test("a retry whose booking is sent again because its reply got lost counts once", async () => {
  const { ledger, newId, accept, settle } = setup();
  const id = newId();
  await accept(id);
  expect(await settle(id, "retry", { attemptsBefore: 0 })).toBe("booked");
  expect(await settle(id, "retry", { attemptsBefore: 0 })).toBe("same");
  expect(await ledger.find(id)).toMatchObject({ attempts: 1, failedAttempts: 1 });
});

test("a death that is sent again after a replay does not kill again", async () => {
  const { ledger, deadLetters, newId, accept, settle } = setup();
  const id = newId();
  await accept(id);
  expect(await settle(id, "die", { attemptsBefore: 0 })).toBe("booked");
  await deadLetters.replay(id, "alice");
  expect(await settle(id, "die", { attemptsBefore: 0 })).toBe("same");
  expect(await ledger.find(id)).toMatchObject({ state: "queued" });
});

test("only the latest attempts are kept and all are counted", async () => {
  const { ledger, newId, accept, settle } = setup();
  const id = newId();
  await accept(id);
  for (let attempt = 1; attempt <= 25; attempt += 1) {
    await settle(id, "retry", { code: `http_${500 + attempt}`, durationMs: attempt });
  }
  const entry = await ledger.find(id);
  expect(entry?.attempts).toBe(25);
  expect(entry?.attemptLog).toHaveLength(20);
  expect(entry?.attemptLog[0]).toMatchObject({ code: "http_506", durationMs: 6, outcome: "retry" });
  expect(entry?.attemptLog.at(-1)).toMatchObject({ code: "http_525", durationMs: 25 });
});

test("a record that has ended is forgotten and its counts stay", async () => {
  const { newId, accept, settle, partition } = setup();
  const brief = new Ledger({ redis, recordRetentionMs: 50, partition });
  const id = newId();
  await accept(id);
  await brief.settle({
    id,
    event: "deliver",
    label: "ok",
    code: "ok",
    providerAckId: undefined,
    durationMs: 1,
    attemptsBefore: 0,
    delayMs: 0,
    isCounted: true,
    notify: undefined,
  });
  await eventually(async () => expect(await brief.find(id)).toBeUndefined());
  expect(await settle(id, "deliver")).toBe("illegal");
  const snapshot = await brief.snapshot();
  expect(countOf(snapshot, "delivered")).toBe(1);
  expectBalance(snapshot);
});

test.each([
  ["queued", "deliver"],
  ["queued", "refuse"],
  ["queued", "retry"],
  ["queued", "die"],
  ["dead", "deliver"],
] as const)("a full Redis books what came of an attempt: %s, then %s", async (state, event) => {
  const fixture = setup();
  const id = fixture.newId();
  for (const step of PATHS[state]) {
    await fire(fixture, id, step);
  }
  await redis.config("SET", "maxmemory", "1");
  try {
    await expect(redis.set("key", "value")).rejects.toThrow("OOM");
    expect(await fixture.settle(id, event)).toBe("booked");
  } finally {
    await redis.config("SET", "maxmemory", "0");
  }
  const transition = decideTransition(state, event);
  expect(transition).toMatchObject({ kind: "moved", to: await stateOf(fixture.ledger, id) });
  expectBalance(await fixture.ledger.snapshot());
});

test("a Redis that forgot the scripts gets them again", async () => {
  const { ledger, newId } = setup();
  const [before, after] = [newId(), newId()];
  expect(await ledger.recordInjection({ ...INJECTION, id: before })).toBe(true);
  await redis.script("FLUSH");
  expect(await ledger.recordInjection({ ...INJECTION, id: after })).toBe(true);
  expect(await ledger.recordInjection({ ...INJECTION, id: before })).toBe(false);
});

test("what is asked after a record sees it, on a Redis that was started anew", async () => {
  const impatient = new Redis(server.url, { enableOfflineQueue: false, maxRetriesPerRequest: 0 });
  // ioredis tells of each try to connect again.
  impatient.on("error", () => {});
  try {
    await once(impatient, "ready");
    const { ledger, newId } = openBooks(impatient);
    const record = (id: AdResponseId) => ledger.recordInjection({ ...INJECTION, id });
    expect(await record(newId())).toBe(true);
    const isAway = once(impatient, "close");
    await server.crash();
    await isAway;
    await expect(record(newId())).rejects.toThrow();
    const isBack = once(impatient, "ready");
    await server.restart();
    await isBack;
    const id = newId();
    const recorded = record(id);
    // The record leaves when this turn ends.
    await new Promise((resolve) => setImmediate(resolve));
    expect(await ledger.find(id)).toMatchObject({ state: "awaiting" });
    expect(await recorded).toBe(true);
  } finally {
    impatient.disconnect();
  }
});

test("a crash of Redis loses no booked transition", async () => {
  const { ledger, newId, accept } = setup();
  const ids = Array.from({ length: 50 }, () => newId());
  await Promise.all(ids.map((id) => accept(id)));
  await server.crash();
  await server.restart();
  await eventually(async () => expect(await redis.ping()).toBe("PONG"));
  expect(countOf(await ledger.snapshot(), "accepted")).toBe(50);
});

/** Dead letters on a real Redis: index, pages, bulk replays, audit, outbox, and races between all changes. */
import { randomUUID } from "node:crypto";
import { type AdResponseId, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import type { DeadReason } from "@adrelay/core";
import { eventually } from "@adrelay/testkit";
import fc from "fast-check";
import { expect, test } from "vitest";
import type { BulkBatch } from "../src/dead-letters/bulk-changes.ts";
import { BulkReplays } from "../src/dead-letters/bulk-kinds.ts";
import type { ListQuestion } from "../src/dead-letters/listing.ts";
import type { LedgerEntry, ListPlace } from "../src/index.ts";
import { EVERYTHING, newId, openTestRedis, openTestStore, settlementOf } from "./store-fixture.ts";

const acme = publisherIdSchema.parse("acme");
const globe = publisherIdSchema.parse("globe");
const LONG_MS = 60_000;
const { redis } = await openTestRedis();

function setup() {
  const fixture = openTestStore(redis);
  const { parts, completer } = fixture;
  const settle = (id: AdResponseId, event: "deliver" | "die", attemptsBefore: number, reason?: DeadReason) =>
    completer.settle(
      settlementOf(id, event, { attemptsBefore, ...(reason === undefined ? {} : { reason }) }),
    );
  const queued = async (publisher: PublisherId = acme) => {
    const id = newId();
    await fixture.begin(id, "hash", { publisher });
    return id;
  };
  const dead = async (publisher: PublisherId = acme, reason: DeadReason = "http_422") => {
    const id = await queued(publisher);
    await settle(id, "die", 0, reason);
    return id;
  };
  return {
    ...fixture,
    outbox: parts.outbox,
    replays: parts.replays,
    settle,
    queued,
    dead,
    many: (count: number, publisher?: PublisherId, reason?: DeadReason) =>
      Promise.all(Array.from({ length: count }, () => dead(publisher, reason))),
    /** Removes the text of an acknowledgment from the queue. */
    loseText: (id: AdResponseId) => redis.del(parts.queue.payloadKey(id)),
  };
}
type Fixture = ReturnType<typeof setup>;

const countsOf = async ({ snapshot }: Fixture) =>
  Object.fromEntries(
    (await snapshot()).deadLetters.map(({ publisher, label, value }) => [`${publisher} ${label}`, value]),
  );

const reasonOf = (entry: LedgerEntry | undefined) =>
  entry !== undefined && "death" in entry ? entry.death.reason : undefined;

const endedAtMsOf = (entry: LedgerEntry | undefined) =>
  entry !== undefined && "endedAtMs" in entry ? (entry.endedAtMs ?? 0) : 0;

/** The index of kinds, the index of all, the gauge and the entries agree. */
async function expectIndexed(fixture: Fixture, ids: readonly AdResponseId[]): Promise<void> {
  const entries = await Promise.all(ids.map((id) => fixture.find(id)));
  const dead = entries.flatMap((entry) => (entry?.state === "dead" ? [entry] : []));
  const kinds = Map.groupBy(dead, (entry) => `${entry.publisher} ${reasonOf(entry)}`);
  const expected = Object.fromEntries([...kinds].map(([kind, of]) => [kind, of.length]));
  expect(await countsOf(fixture)).toEqual(expected);
  expect(await redis.zcard(fixture.key("dead"))).toBe(dead.length);
  const { states } = await fixture.snapshot();
  const inState = (state: string) =>
    states.filter(({ label }) => label === state).reduce((sum, { value }) => sum + value, 0);
  expect(inState("dead")).toBe(dead.length);
  expect(states.reduce((sum, { value }) => sum + value, 0)).toBe(ids.length);
  expect(states.every(({ value }) => value >= 0)).toBe(true);
  expect(await redis.zcard(fixture.key("queued"))).toBe(inState("queued"));
  const coded = dead.filter(({ death }) => death.providerError === "some_code");
  const ofCode = { ...EVERYTHING, code: "some_code" };
  expect((await fixture.replays.count(ofCode)).matched).toBe(coded.length);
  expect((await walk(fixture, ofCode)).toSorted()).toEqual(coded.map(({ id }) => id).toSorted());
  expect(await redis.exists(fixture.key("dead-code:some_code"))).toBe(coded.length > 0 ? 1 : 0);
}

/** Walks all pages; `between` runs after each. */
async function walk(
  { acknowledgments }: Fixture,
  question: Partial<ListQuestion>,
  between: (page: number) => Promise<unknown> = async () => {},
): Promise<AdResponseId[]> {
  const seen: AdResponseId[] = [];
  let after: ListPlace | undefined;
  let pages = 0;
  do {
    const page = await acknowledgments.page({ ...EVERYTHING, state: "dead", limit: 7, ...question, after });
    seen.push(...page.entries.map(({ id }) => id));
    after = page.next;
    pages += 1;
    await between(pages);
  } while (after !== undefined);
  return seen;
}

/** Runs batches until the replay has ended; resolves with what each did. */
async function runToEnd({ replays }: Fixture, id: string, limit = 200): Promise<BulkBatch[]> {
  const batches: BulkBatch[] = [];
  await eventually(async () => {
    const batch = await replays.runBatch(id, limit, 0);
    batches.push(batch);
    expect(batch.state).toBe("completed");
  }, 20_000);
  return batches;
}

test("every change of a dead letter keeps the index correct", async () => {
  const fixture = setup();
  const { deadLetters, settle, sweepExpired } = fixture;
  const ids = [
    ...(await fixture.many(3, acme, "http_404")),
    ...(await fixture.many(2, globe, "http_404")),
    ...(await fixture.many(2, acme, "exhausted")),
  ];
  const [replayed, discarded, late, ...rest] = ids;
  expect(await countsOf(fixture)).toEqual({ "acme http_404": 3, "globe http_404": 2, "acme exhausted": 2 });
  if (replayed === undefined || discarded === undefined || late === undefined) {
    throw new TypeError("too few");
  }
  await deadLetters.replay(replayed, "alice");
  await deadLetters.discard(discarded, "alice", "stale");
  await settle(late, "deliver", 1);
  expect(await countsOf(fixture)).toEqual({ "globe http_404": 2, "acme exhausted": 2 });
  await expectIndexed(fixture, ids);
  expect(await sweepExpired(100, 0)).toBe(rest.length);
  expect(await countsOf(fixture)).toEqual({});
  expect((await fixture.snapshot()).totals.get("expired")).toHaveLength(2);
  await expectIndexed(fixture, ids);
});

test("pages show each of many letters of one millisecond once, in a fixed order", async () => {
  const fixture = setup();
  const ids = await fixture.many(60);
  await fixture.many(5, globe);
  const dead = [fixture.key("dead"), fixture.key("dead:acme|http_422")];
  for (const key of dead) {
    await redis.zadd(key, "XX", ...ids.flatMap((id) => [1000, id.replaceAll("-", "")]));
  }
  const seen = await walk(fixture, { publisher: acme });
  expect(seen).toEqual(ids.toSorted().reverse());
  expect((await walk(fixture, { sinceMs: 1000, untilMs: 1001 })).toSorted()).toEqual(ids.toSorted());
  expect(await walk(fixture, { untilMs: 1000 })).toEqual([]);
});

test("pages skip and repeat nothing while letters leave and others die", async () => {
  const fixture = setup();
  const ids = [...(await fixture.many(30, acme, "http_404")), ...(await fixture.many(30, globe, "http_404"))];
  const gone = new Set<AdResponseId>();
  const seen = await walk(fixture, { reason: "http_404" }, async (page) => {
    const leaving = ids[page * 5];
    if (leaving !== undefined) {
      gone.add(leaving);
      await fixture.deadLetters.replay(leaving, "alice");
    }
    await fixture.dead(acme, "http_404");
  });
  expect(new Set(seen).size).toBe(seen.length);
  expect(ids.filter((id) => !gone.has(id) && !seen.includes(id))).toEqual([]);
  const times = await Promise.all(seen.map(async (id) => endedAtMsOf(await fixture.find(id))));
  const stillDead = times.filter((time) => time > 0);
  expect(stillDead).toEqual(stillDead.toSorted((a, b) => b - a));
});

test("a page of a rare publisher's queued entries is bounded, and the next goes on", async () => {
  const fixture = setup();
  const rare = await fixture.queued(globe);
  await Promise.all(Array.from({ length: 2100 }, () => fixture.queued(acme)));
  const question = { ...EVERYTHING, state: "queued", publisher: globe, limit: 50, after: undefined } as const;
  const first = await fixture.acknowledgments.page(question);
  expect(first.entries).toEqual([]);
  expect(first.next).toBeDefined();
  expect(await walk(fixture, { state: "queued", publisher: globe })).toEqual([rare]);
});

test("a filter covers its publisher, its reason and its times", async () => {
  const fixture = setup();
  await fixture.many(2, acme, "http_404");
  await fixture.many(3, acme, "http_400");
  await fixture.many(4, globe, "http_404");
  const { replays } = fixture;
  const nowMs = (await fixture.snapshot()).nowMs;
  expect((await replays.count(EVERYTHING)).matched).toBe(9);
  expect((await replays.count({ ...EVERYTHING, publisher: acme })).matched).toBe(5);
  expect((await replays.count({ ...EVERYTHING, reason: "http_404" })).matched).toBe(6);
  expect((await replays.count({ ...EVERYTHING, publisher: globe, reason: "http_400" })).matched).toBe(0);
  expect((await replays.count({ ...EVERYTHING, untilMs: nowMs - LONG_MS })).matched).toBe(0);
  expect(
    (await replays.count({ ...EVERYTHING, sinceMs: nowMs - LONG_MS, untilMs: nowMs + LONG_MS })).matched,
  ).toBe(9);
});

test("several workers together put back no more than a replay's rate", async () => {
  const fixture = setup();
  await fixture.many(120);
  const id = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 100, by: "alice" });
  const createdAtMs = (await fixture.replays.find(id))?.createdAtMs ?? 0;
  const batches: BulkBatch[] = [];
  const worker = async () => {
    let state: BulkBatch["state"] = "running";
    while (state === "running") {
      const batch = await fixture.replays.runBatch(id, 50, 0);
      batches.push(batch);
      state = batch.state;
    }
  };
  await Promise.all([worker(), worker(), worker()]);
  let moved = 0;
  for (const batch of batches.toSorted((a, b) => a.atUs - b.atUs)) {
    moved += batch.moved.length;
    expect(moved).toBeLessThanOrEqual(((batch.atUs / 1000 - createdAtMs) * 100) / 1000);
  }
  expect(moved).toBe(120);
  expect(await fixture.replays.find(id)).toMatchObject({ state: "completed", matched: 120, replayed: 120 });
});

test("a delayed bulk replay catches up in bursts of one second at most", async () => {
  const fixture = setup();
  await fixture.many(30);
  const id = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 10, by: "alice" });
  await redis.hincrby(fixture.key(`replay:${id}`), "created", -LONG_MS);
  await redis.hincrby(fixture.key(`replay:${id}`), "refilled", -LONG_MS * 1000);
  await redis.hset(fixture.key(`replay:${id}`), "created", Date.now() + 1);
  await eventually(async () => expect((await fixture.replays.runBatch(id, 50, 0)).moved).toHaveLength(10));
});

test("publishers take turns, however many letters each has", async () => {
  const fixture = setup();
  await fixture.many(200, acme, "http_404");
  await fixture.many(100, acme, "http_400");
  const few = await fixture.many(10, globe);
  const id = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 10_000, by: "alice" });
  const moved: AdResponseId[] = [];
  await eventually(async () => {
    moved.push(...(await fixture.replays.runBatch(id, 4, 0)).moved.map(({ id: letter }) => letter));
    expect(moved.length).toBeGreaterThanOrEqual(20);
  });
  expect(moved.filter((letter) => few.includes(letter)).length).toBeGreaterThanOrEqual(8);
});

test("a letter that dies again is not sent twice by one bulk replay", async () => {
  const fixture = setup();
  const ids = await fixture.many(20);
  const id = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 1000, by: "alice" });
  const moved: AdResponseId[] = [];
  await eventually(async () => {
    const batch = await fixture.replays.runBatch(id, 5, 0);
    for (const { id: letter } of batch.moved) {
      moved.push(letter);
      await fixture.settle(letter, "die", 1, "http_422");
    }
    expect(batch.state).toBe("completed");
  });
  expect(moved.toSorted()).toEqual(ids.toSorted());
  expect(await countsOf(fixture)).toEqual({ "acme http_422": 20 });
  const again = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 1000, by: "alice" });
  const batches = await runToEnd(fixture, again);
  const movedAgain = batches.flatMap(({ moved: letters }) => letters).map(({ id: letter }) => letter);
  expect(movedAgain.toSorted()).toEqual(ids.toSorted());
});

test("a cancelled bulk replay moves nothing more, and can't be cancelled twice", async () => {
  const fixture = setup();
  await fixture.many(10);
  const { replays } = fixture;
  const id = await replays.start({ filter: EVERYTHING, ratePerSecond: 10_000, by: "alice" });
  await eventually(async () => expect((await replays.runBatch(id, 3, 0)).moved).toHaveLength(3));
  expect(await replays.cancel(id, "bob")).toBe("cancelled");
  expect(await replays.runBatch(id, 3, 0)).toMatchObject({ state: "cancelled", moved: [] });
  expect(await replays.cancel(id, "bob")).toBe("ended");
  expect(await replays.cancel(randomUUID(), "bob")).toBe("unknown");
  expect(await replays.running()).toEqual([]);
  expect(await replays.find(id)).toMatchObject({ state: "cancelled", replayed: 3, createdBy: "alice" });
  expect(await redis.pttl(fixture.key(`replay:${id}`))).toBeGreaterThan(0);
});

test("the list of bulk replays leaves out expired records", async () => {
  const fixture = setup();
  const brief = new BulkReplays({ ...fixture.parts, recordRetentionMs: 1 });
  const first = await brief.start({ filter: EVERYTHING, ratePerSecond: 1, by: "alice" });
  await brief.cancel(first, "alice");
  const second = await brief.start({
    filter: { ...EVERYTHING, publisher: acme },
    ratePerSecond: 5,
    by: "bob",
  });
  await eventually(async () => expect((await brief.latest(10)).map(({ id }) => id)).toEqual([second]));
  const [shown] = await brief.latest(10);
  expect(shown).toMatchObject({
    filter: { publisher: acme, reason: undefined },
    ratePerSecond: 5,
    matched: 0,
  });
});

test("the audit shows who did what, newest first, in pages", async () => {
  const fixture = setup();
  const [one, two] = [await fixture.dead(), await fixture.dead()];
  await fixture.deadLetters.replay(one, "alice");
  await fixture.deadLetters.replay(one, "alice");
  await fixture.deadLetters.discard(two, "bob", 'said "no"');
  const replayId = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 7, by: "alice" });
  await fixture.replays.cancel(replayId, "bob");
  const first = await fixture.audit.page(2, undefined);
  expect(first.entries).toMatchObject([
    { by: "bob", action: "replays_cancel", replayId, details: { replayed: 0 } },
    {
      by: "alice",
      action: "replays_start",
      replayId,
      details: { rate_per_second: 7, matched: 0, since: null },
    },
  ]);
  const second = await fixture.audit.page(2, first.next);
  expect(second).toMatchObject({
    entries: [
      { by: "bob", action: "discard", adResponseId: two, details: { reason: 'said "no"' } },
      { by: "alice", action: "replay", adResponseId: one, details: {} },
    ],
    next: undefined,
  });
});

test("a new audit entry removes those older than 400 days", async () => {
  const fixture = setup();
  const fields = ["by", "old", "action", "replay", "id", "", "replay", "", "details", "{}"];
  for (let at = 1; at <= 300; at += 1) {
    await redis.xadd(fixture.key("audit"), `${at}-0`, ...fields);
  }
  await fixture.deadLetters.replay(await fixture.dead(), "alice");
  expect(await redis.xlen(fixture.key("audit"))).toBeLessThan(200);
});

test("an outbox task that has to wait delays no other", async () => {
  const { snapshot, outbox, many, sweepExpired } = setup();
  const ids = await many(30);
  await sweepExpired(100, 0);
  const leased = await Promise.all([outbox.leaseDue(20, LONG_MS), outbox.leaseDue(20, LONG_MS)]);
  expect(
    leased
      .flat()
      .map(({ id }) => id)
      .toSorted(),
  ).toEqual(ids.toSorted());
  expect(await outbox.leaseDue(20, LONG_MS)).toEqual([]);
  expect((await snapshot()).outboxTasks).toBe(30);
});

test("an outbox task that was leased and not done comes up again", async () => {
  const { outbox, dead, sweepExpired } = setup();
  await dead();
  await sweepExpired(1, 0);
  expect(await outbox.leaseDue(5, 1)).toHaveLength(1);
  await eventually(async () => expect(await outbox.leaseDue(5, 1)).toHaveLength(1));
});

test("removing the task of one replay keeps that of the next", async () => {
  const { replays, outbox, dead, settle } = setup();
  const id = await dead();
  const replayOne = async () => {
    const replay = await replays.start({ filter: EVERYTHING, ratePerSecond: 1000, by: "alice" });
    return eventually(async () => {
      const { moved } = await replays.runBatch(replay, 5, 0);
      expect(moved).toHaveLength(1);
      return moved;
    });
  };
  const first = await replayOne();
  await settle(id, "die", 1, "http_400");
  const second = await replayOne();
  await outbox.remove(first);
  expect(await outbox.leaseDue(5, LONG_MS)).toEqual(second);
});

test("a replay requeues its job immediately and removes its task", async () => {
  const { deadLetters, dead, snapshot } = setup();
  const id = await dead();
  const replayed = await deadLetters.replay(id, "alice");
  expect(replayed.kind).toBe("booked");
  await ("followed" in replayed ? replayed.followed : undefined);
  expect((await snapshot()).outboxTasks).toBe(0);
});

test("a queued acknowledgment without its text dies with the reason payload_lost", async () => {
  const fixture = setup();
  const { find, outbox, loseText } = fixture;
  const id = await fixture.queued();
  expect(await outbox.losePayload(id)).toBe(false);
  await loseText(id);
  expect(await outbox.losePayload(id)).toBe(true);
  expect(await outbox.losePayload(id)).toBe(false);
  expect(await find(id)).toMatchObject({ state: "dead", death: { reason: "payload_lost" } });
  await expectIndexed(fixture, [id]);
});

test("a death keeps the body's size and the provider's code until it is replayed", async () => {
  const { find, deadLetters, dead, settle, key } = setup();
  const id = await dead();
  expect(await find(id)).toMatchObject({ sizeBytes: 42, death: { providerError: "some_code" } });
  await deadLetters.replay(id, "alice");
  expect(await redis.hmget(key(`e:${id.replaceAll("-", "")}`), "y", "x")).toEqual([null, null]);
  await settle(id, "die", 1, "http_400");
  expect(await find(id)).toMatchObject({ sizeBytes: 42, death: { reason: "http_400" } });
});

test("replays, discards, deliveries, deaths and bulk replays that race end in one legal state", async () => {
  const action = fc.constantFrom("replay", "discard", "deliver", "die", "expire", "bulk", "lose");
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 20, maxLength: 60 }), async (actions) => {
      const fixture = setup();
      const { deadLetters, replays, settle, outbox, sweepExpired, loseText } = fixture;
      const ids = [...(await fixture.many(3)), ...(await fixture.many(3, globe))];
      const bulk = await replays.start({ filter: EVERYTHING, ratePerSecond: 10_000, by: "alice" });
      const run = async (name: (typeof actions)[number], id: AdResponseId) => {
        const entry = await fixture.find(id);
        const attempts = entry !== undefined && "attempts" in entry ? entry.attempts : 0;
        const steps = {
          replay: () => deadLetters.replay(id, "alice"),
          discard: () => deadLetters.discard(id, "bob", "stale"),
          deliver: () => settle(id, "deliver", attempts),
          die: () => settle(id, "die", attempts, "http_400"),
          expire: () => sweepExpired(1, 0),
          bulk: () => replays.runBatch(bulk, 2, 0),
          lose: () => loseText(id).then(() => outbox.losePayload(id)),
        };
        const left = await steps[name]();
        await (typeof left === "object" && "followed" in left ? left.followed : undefined);
      };
      await Promise.all(actions.map((name, at) => run(name, ids[at % ids.length] ?? ids[0] ?? fail())));
      await expectIndexed(fixture, ids);
      const { replayed = 0, outcomes } = (await replays.find(bulk)) ?? {};
      const { dead = {}, delivered = 0, refused = 0, discarded = 0, waiting = 0 } = outcomes ?? {};
      const again = Object.values(dead).reduce((sum, count) => sum + count, 0);
      expect(again + delivered + refused + discarded + waiting).toBe(replayed);
      expect(waiting).toBeGreaterThanOrEqual(0);
    }),
    { numRuns: 40 },
  );
});

function fail(): never {
  throw new TypeError("there are ids");
}

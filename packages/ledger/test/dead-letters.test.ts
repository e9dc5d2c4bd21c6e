/** Dead letters on a real Redis: their index, pages, bulk replays, audit, and what races for them. */
import { randomUUID } from "node:crypto";
import {
  type AdResponseId,
  adResponseIdSchema,
  type PublisherId,
  publisherIdSchema,
} from "@adrelay/contract";
import type { DeadReason } from "@adrelay/core";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";
import fc from "fast-check";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  Audit,
  type DeadFilter,
  DeadLetters,
  Ledger,
  Listing,
  type ListPlace,
  type ListQuestion,
  type ReplayBatch,
  Replays,
  type Settlement,
} from "../src/index.ts";

const acme = publisherIdSchema.parse("acme");
const globe = publisherIdSchema.parse("globe");
const LONG_MS = 60_000;
const EVERYTHING: DeadFilter = {
  publisher: undefined,
  reason: undefined,
  sinceMs: undefined,
  untilMs: undefined,
};
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

function setup() {
  const partition = randomUUID();
  const options = { redis, recordRetentionMs: LONG_MS, partition };
  const ledger = new Ledger(options);
  const deadLetters = new DeadLetters(options);
  const payload = { key: `{adrelay:${partition}}:payload`, field: "name" };
  const settle = (id: AdResponseId, event: Settlement["event"], label: string, attemptsBefore: number) =>
    ledger.settle({
      id,
      event,
      label,
      code: "code",
      providerAckId: undefined,
      durationMs: 1,
      delayMs: 1,
      isCounted: true,
      attemptsBefore,
      death: { sizeBytes: 42, providerError: "some_code" },
      notify: undefined,
    });
  const queued = async (publisher: PublisherId = acme) => {
    const id = adResponseIdSchema.parse(randomUUID());
    await redis.hset(payload.key, payload.field, "hash");
    await ledger.begin({ id, publisher, textHash: "hash", payload });
    return id;
  };
  const dead = async (publisher: PublisherId = acme, reason: DeadReason = "http_422") => {
    const id = await queued(publisher);
    await settle(id, "die", reason, 0);
    return id;
  };
  return {
    ledger,
    deadLetters,
    listing: new Listing(options),
    replays: new Replays(options),
    audit: new Audit(options),
    payload,
    settle,
    queued,
    dead,
    many: (count: number, publisher?: PublisherId, reason?: DeadReason) =>
      Promise.all(Array.from({ length: count }, () => dead(publisher, reason))),
    key: (name: string) => `{adrelay:${partition}}:${name}`,
  };
}
type Fixture = ReturnType<typeof setup>;

const countsOf = async ({ ledger }: Fixture) =>
  Object.fromEntries(
    (await ledger.snapshot()).deadLetters.map(({ publisher, label, value }) => [
      `${publisher} ${label}`,
      value,
    ]),
  );

/** The index of kinds, the index of all, the gauge and the entries say the same. */
async function expectIndexed(fixture: Fixture, ids: readonly AdResponseId[]): Promise<void> {
  const entries = await Promise.all(ids.map((id) => fixture.ledger.find(id)));
  const dead = entries.filter((entry) => entry?.state === "dead");
  const kinds = Map.groupBy(dead, (entry) => `${entry?.publisher} ${entry?.deadReason}`);
  const expected = Object.fromEntries([...kinds].map(([kind, of]) => [kind, of.length]));
  expect(await countsOf(fixture)).toEqual(expected);
  expect(await redis.zcard(fixture.key("dead"))).toBe(dead.length);
  const { states } = await fixture.ledger.snapshot();
  const inState = (state: string) =>
    states.filter(({ label }) => label === state).reduce((sum, { value }) => sum + value, 0);
  expect(inState("dead")).toBe(dead.length);
  expect(states.reduce((sum, { value }) => sum + value, 0)).toBe(ids.length);
  expect(states.every(({ value }) => value >= 0)).toBe(true);
  expect(await redis.zcard(fixture.key("queued"))).toBe(inState("queued"));
}

/** Walks all pages; `between` runs after each. */
async function walk(
  { listing }: Fixture,
  question: Partial<ListQuestion>,
  between: (page: number) => Promise<unknown> = async () => {},
): Promise<AdResponseId[]> {
  const seen: AdResponseId[] = [];
  let after: ListPlace | undefined;
  let pages = 0;
  do {
    const page = await listing.page({ ...EVERYTHING, state: "dead", limit: 7, ...question, after });
    seen.push(...page.entries.map(({ id }) => id));
    after = page.next;
    pages += 1;
    await between(pages);
  } while (after !== undefined);
  return seen;
}

/** Runs batches until the replay has ended; answers what each did. */
async function runToEnd({ replays }: Fixture, id: string, limit = 200): Promise<ReplayBatch[]> {
  const batches: ReplayBatch[] = [];
  await eventually(async () => {
    const batch = await replays.runBatch(id, limit, 0);
    batches.push(batch);
    expect(batch.state).toBe("completed");
  }, 20_000);
  return batches;
}

test("every way into and out of the dead letters keeps the index", async () => {
  const fixture = setup();
  const { ledger, deadLetters, settle } = fixture;
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
  await settle(late, "deliver", "ok", 1);
  expect(await countsOf(fixture)).toEqual({ "globe http_404": 2, "acme exhausted": 2 });
  await expectIndexed(fixture, ids);
  expect(await ledger.sweepExpired(100, 0)).toBe(rest.length);
  expect(await countsOf(fixture)).toEqual({});
  expect((await ledger.snapshot()).totals.get("expired")).toHaveLength(2);
  await expectIndexed(fixture, ids);
});

test("dead letters that an older version left out of the index are put into it", async () => {
  const fixture = setup();
  const ids = [...(await fixture.many(7, acme, "http_404")), ...(await fixture.many(5, globe))];
  expect(await fixture.deadLetters.indexMissing(0, 4)).toBeUndefined();
  await redis.del(fixture.key("dead-kinds"), fixture.key("dead:acme|http_404"));
  await redis.zrem(fixture.key("dead:globe|http_422"), String(ids[8]).replaceAll("-", ""));
  let rank: number | undefined = 0;
  for (let round = 0; round < 5 && rank !== undefined; round += 1) {
    rank = await fixture.deadLetters.indexMissing(rank, 4);
  }
  expect(rank).toBeUndefined();
  await expectIndexed(fixture, ids);
  const ofAcme = (await walk(fixture, {})).filter((id) => ids.indexOf(id) < 7);
  expect(await walk(fixture, { publisher: acme })).toEqual(ofAcme);
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
  const times = await Promise.all(seen.map(async (id) => (await fixture.ledger.find(id))?.endedAtMs ?? 0));
  const stillDead = times.filter((time) => time > 0);
  expect(stillDead).toEqual(stillDead.toSorted((a, b) => b - a));
});

test("a page of a rare publisher's queued ones is bounded and its cursor leads on", async () => {
  const fixture = setup();
  const rare = await fixture.queued(globe);
  await Promise.all(Array.from({ length: 2100 }, () => fixture.queued(acme)));
  const question = { ...EVERYTHING, state: "queued", publisher: globe, limit: 50, after: undefined } as const;
  const first = await fixture.listing.page(question);
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
  const nowMs = (await fixture.ledger.snapshot()).nowMs;
  expect(await replays.count(EVERYTHING)).toBe(9);
  expect(await replays.count({ ...EVERYTHING, publisher: acme })).toBe(5);
  expect(await replays.count({ ...EVERYTHING, reason: "http_404" })).toBe(6);
  expect(await replays.count({ ...EVERYTHING, publisher: globe, reason: "http_400" })).toBe(0);
  expect(await replays.count({ ...EVERYTHING, untilMs: nowMs - LONG_MS })).toBe(0);
  expect(await replays.count({ ...EVERYTHING, sinceMs: nowMs - LONG_MS, untilMs: nowMs + LONG_MS })).toBe(9);
});

test("a bulk replay puts back no more than its rate allows, by however many workers", async () => {
  const fixture = setup();
  await fixture.many(120);
  const id = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 100, by: "alice" });
  const createdAtMs = (await fixture.replays.find(id))?.createdAtMs ?? 0;
  const batches: ReplayBatch[] = [];
  const worker = async () => {
    let state: ReplayBatch["state"] = "running";
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

test("what was not done in time is made up for in bursts of one second at most", async () => {
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
      await fixture.settle(letter, "die", "http_422", 1);
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

test("the latest bulk replays are listed, and those whose record has gone are not", async () => {
  const fixture = setup();
  const brief = new Replays({ redis, recordRetentionMs: 1, partition: fixture.key("").slice(9, -2) });
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

test("the audit holds who did what, newest first, in pages", async () => {
  const fixture = setup();
  const [one, two] = [await fixture.dead(), await fixture.dead()];
  await fixture.deadLetters.replay(one, "alice");
  await fixture.deadLetters.replay(one, "alice");
  await fixture.deadLetters.discard(two, "bob", 'said "no"');
  const replayId = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 7, by: "alice" });
  await fixture.replays.cancel(replayId, "bob");
  const first = await fixture.audit.page(2, undefined);
  expect(first.entries).toMatchObject([
    { by: "bob", action: "replays_cancel", replayId },
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

test("audit entries older than 400 days go when new ones come", async () => {
  const fixture = setup();
  const fields = ["by", "old", "action", "replay", "id", "", "replay", "", "details", "{}"];
  for (let at = 1; at <= 300; at += 1) {
    await redis.xadd(fixture.key("audit"), `${at}-0`, ...fields);
  }
  await fixture.deadLetters.replay(await fixture.dead(), "alice");
  expect(await redis.xlen(fixture.key("audit"))).toBeLessThan(200);
});

test("payload work that has to wait holds up no other", async () => {
  const { ledger, deadLetters, many } = setup();
  const ids = await many(30);
  await Promise.all(ids.map((id) => deadLetters.discard(id, "alice", "stale")));
  const taken = await Promise.all([
    deadLetters.takePayloadWork(20, LONG_MS),
    deadLetters.takePayloadWork(20, LONG_MS),
  ]);
  expect(
    taken
      .flat()
      .map(({ id }) => id)
      .toSorted(),
  ).toEqual(ids.toSorted());
  expect(await deadLetters.takePayloadWork(20, LONG_MS)).toEqual([]);
  expect((await ledger.snapshot()).payloadWork).toBe(30);
});

test("payload work that was taken and not finished comes up again", async () => {
  const { deadLetters, dead } = setup();
  const id = await dead();
  await deadLetters.replay(id, "alice");
  expect(await deadLetters.takePayloadWork(5, 1)).toHaveLength(1);
  await eventually(async () => expect(await deadLetters.takePayloadWork(5, 1)).toHaveLength(1));
});

test("who finishes the work of one replay leaves that of the next alone", async () => {
  const { deadLetters, dead, settle } = setup();
  const id = await dead();
  await deadLetters.replay(id, "alice");
  const [first] = await deadLetters.takePayloadWork(5, LONG_MS);
  await settle(id, "die", "http_400", 1);
  const again = await deadLetters.replay(id, "alice");
  await deadLetters.finishPayloadWork(...(first === undefined ? [] : [first]));
  expect(await deadLetters.takePayloadWork(5, LONG_MS)).toEqual(
    again.kind === "booked" ? [again.work] : "none",
  );
});

test("what is queued without its text becomes a dead letter of its own reason", async () => {
  const fixture = setup();
  const { ledger, deadLetters, payload, key } = fixture;
  const id = await fixture.dead();
  await deadLetters.replay(id, "alice");
  expect(await deadLetters.losePayload(id, payload.key)).toBe(false);
  expect(await deadLetters.losePayload(id, key("nothing"))).toBe(true);
  expect(await deadLetters.losePayload(id, key("nothing"))).toBe(false);
  expect(await ledger.find(id)).toMatchObject({ state: "dead", deadReason: "payload_lost" });
  await expectIndexed(fixture, [id]);
});

test("a death keeps the body's size and the provider's code until it is replayed", async () => {
  const { ledger, deadLetters, dead } = setup();
  const id = await dead();
  expect(await ledger.find(id)).toMatchObject({ sizeBytes: 42, providerError: "some_code" });
  await deadLetters.replay(id, "alice");
  const { providerError, sizeBytes } = (await ledger.find(id)) ?? {};
  expect({ providerError, sizeBytes }).toEqual({ providerError: undefined, sizeBytes: 42 });
});

test("replays, discards, deliveries, deaths and bulk replays that race end in one legal state", async () => {
  const action = fc.constantFrom("replay", "discard", "deliver", "die", "expire", "bulk", "lose");
  await fc.assert(
    fc.asyncProperty(fc.array(action, { minLength: 20, maxLength: 60 }), async (actions) => {
      const fixture = setup();
      const { ledger, deadLetters, replays, settle, key } = fixture;
      const ids = [...(await fixture.many(3)), ...(await fixture.many(3, globe))];
      const bulk = await replays.start({ filter: EVERYTHING, ratePerSecond: 10_000, by: "alice" });
      const run = async (name: (typeof actions)[number], id: AdResponseId) => {
        const attempts = (await ledger.find(id))?.attempts ?? 0;
        const steps = {
          replay: () => deadLetters.replay(id, "alice"),
          discard: () => deadLetters.discard(id, "bob", "stale"),
          deliver: () => settle(id, "deliver", "ok", attempts),
          die: () => settle(id, "die", "http_400", attempts),
          expire: () => ledger.sweepExpired(1, 0),
          bulk: () => replays.runBatch(bulk, 2, 0),
          lose: () => deadLetters.losePayload(id, key("nothing")),
        };
        await steps[name]();
      };
      await Promise.all(actions.map((name, at) => run(name, ids[at % ids.length] ?? ids[0] ?? fail())));
      await expectIndexed(fixture, ids);
    }),
    { numRuns: 40 },
  );
});

function fail(): never {
  throw new TypeError("there are ids");
}

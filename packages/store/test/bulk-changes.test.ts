/**
 * Bulk replays and bulk discards of thirty dead letters of five kinds on a real Redis: filters, what became of the letters,
 * and ends. They guard against a replay that hides its failures, and against a discard of more than was asked for.
 */
import { type AdResponseId, publisherIdSchema } from "@adrelay/contract";
import type { DeadReason } from "@adrelay/core";
import { eventually } from "@adrelay/testkit";
import { expect, test } from "vitest";
import { z } from "zod";
import type { StopRule } from "../src/dead-letters/bulk-record.ts";
import type { DeadFilter } from "../src/index.ts";
import { idOf } from "../src/redis/keys.ts";
import { EVERYTHING, newId, openTestRedis, openTestStore, settlementOf } from "./store-fixture.ts";

const acme = publisherIdSchema.parse("acme");
const globe = publisherIdSchema.parse("globe");
const BULK_GRACE_MS = 0;

interface Kind {
  readonly publisher: typeof acme;
  readonly reason: DeadReason;
  readonly code: string;
}
const KINDS: readonly Kind[] = [
  { publisher: acme, reason: "http_422", code: "text_too_long" },
  { publisher: acme, reason: "http_422", code: "campaign_ended" },
  { publisher: globe, reason: "http_422", code: "campaign_ended" },
  { publisher: globe, reason: "http_404", code: "unknown_ad" },
  { publisher: acme, reason: "exhausted", code: "" },
];
const OF_EACH = 6;

const { redis } = await openTestRedis();

function setup() {
  const fixture = openTestStore(redis);
  const { parts, completer } = fixture;
  const die = (id: AdResponseId, attemptsBefore: number, { reason, code }: Pick<Kind, "reason" | "code">) =>
    completer.settle(settlementOf(id, "die", { attemptsBefore, reason, providerError: code }));
  const dead = async (kind: Kind, id = newId()) => {
    await fixture.begin(id, "hash", { publisher: kind.publisher });
    await die(id, 0, kind);
    return id;
  };
  return { ...fixture, outbox: parts.outbox, replays: parts.replays, discards: parts.discards, die, dead };
}
type Fixture = ReturnType<typeof setup>;

/** Six letters of each kind, by the place of the kind. */
function thirty({ dead }: Fixture): Promise<AdResponseId[][]> {
  return Promise.all(KINDS.map((kind) => Promise.all(Array.from({ length: OF_EACH }, () => dead(kind)))));
}

const startReplay = ({ replays }: Fixture, filter: Partial<DeadFilter> = {}, stop?: StopRule) =>
  replays.start({ filter: { ...EVERYTHING, ...filter }, ratePerSecond: 10_000, by: "alice", stop });

const startDiscard = ({ discards }: Fixture, filter: Partial<DeadFilter> = {}) =>
  discards.start({ filter: { ...EVERYTHING, ...filter }, by: "alice", why: "the campaign has ended" });

/** Runs a replay until it ends, with an outcome for each letter that is put back. Resolves with the letters in order. */
async function replayToEnd(
  { replays }: Fixture,
  id: string,
  settle: (letter: AdResponseId, at: number) => Promise<unknown> = async () => {},
): Promise<AdResponseId[]> {
  const moved: AdResponseId[] = [];
  await eventually(async () => {
    const batch = await replays.runBatch(id, 100, BULK_GRACE_MS);
    for (const { id: letter } of batch.moved) {
      await settle(letter, moved.length);
      moved.push(letter);
    }
    expect(batch.state).not.toBe("running");
  }, 20_000);
  return moved;
}

const listed = async ({ acknowledgments }: Fixture, filter: Partial<DeadFilter>) => {
  const question = { ...EVERYTHING, ...filter, state: "dead", limit: 100, after: undefined } as const;
  return (await acknowledgments.page(question)).entries.map(({ id }) => id).toSorted();
};

test("a filter with the provider's code covers the letters with this code, of any kind", async () => {
  const fixture = setup();
  const [long = [], ended = [], endedOfGlobe = []] = await thirty(fixture);
  const matched = async (filter: Partial<DeadFilter>) =>
    (await fixture.discards.count({ ...EVERYTHING, ...filter })).matched;
  expect(await listed(fixture, { code: "campaign_ended" })).toEqual([...ended, ...endedOfGlobe].toSorted());
  expect(await listed(fixture, { code: "text_too_long" })).toEqual(long.toSorted());
  expect(await listed(fixture, { code: "campaign_ended", publisher: globe })).toEqual(
    endedOfGlobe.toSorted(),
  );
  expect(await listed(fixture, { code: "campaign_ended", reason: "http_404" })).toEqual([]);
  expect(await matched({})).toBe(30);
  expect(await matched({ reason: "http_422" })).toBe(18);
  expect(await matched({ code: "campaign_ended" })).toBe(12);
  expect(await matched({ code: "campaign_ended", publisher: acme })).toBe(6);
  expect(await matched({ code: "unheard_of" })).toBe(0);
  const replay = await startReplay(fixture, { code: "campaign_ended" });
  expect((await replayToEnd(fixture, replay)).toSorted()).toEqual([...ended, ...endedOfGlobe].toSorted());
  expect(await listed(fixture, { code: "campaign_ended" })).toEqual([]);
  expect(await matched({})).toBe(18);
});

test("the codes of letters that died under an older version are found after the first sweep", async () => {
  const fixture = setup();
  const [, ended = []] = await thirty(fixture);
  const codes = ["text_too_long", "campaign_ended", "unknown_ad"];
  await redis.del(...codes.map((code) => fixture.key(`dead-code:${code}`)));
  await redis.del(fixture.key("dead:acme|http_422|campaign_ended"));
  expect(await listed(fixture, { code: "campaign_ended" })).toEqual([]);
  await fixture.maintenance.sweep(3_600_000);
  expect(await listed(fixture, { code: "campaign_ended", publisher: acme })).toEqual(ended.toSorted());
  expect(await listed(fixture, { code: "unknown_ad" })).toHaveLength(OF_EACH);
});

test("the codes of letters behind one that has died again meanwhile are found, too", async () => {
  const fixture = setup();
  await thirty(fixture);
  await redis.del(await redis.keys(fixture.key("dead-code:*")));
  const { run, keys } = fixture.parts;
  const step = async (last: readonly string[], most: number) => {
    const args = [...last, most, keys.entryPrefix];
    const reply = await run("maintenance/index-deaths", { keys: keys.forEntry(""), args });
    return z.array(z.string()).parse(reply);
  };
  const last = await step(["", ""], 1);
  const first = idOf(last[0] ?? "");
  await fixture.deadLetters.replay(first, "alice");
  await fixture.die(first, 1, { reason: "http_422", code: "campaign_ended" });
  await step(last, 100);
  const { matched } = await fixture.discards.count({ ...EVERYTHING, code: "unknown_ad" });
  expect(matched).toBeGreaterThanOrEqual(OF_EACH - 1);
});

/** One dead letter of each kind whose injection was recorded. The thirty have unknown ids. */
function fiveKnown({ injections, dead }: Fixture): Promise<AdResponseId[]> {
  return Promise.all(
    KINDS.map(async (kind) => {
      const id = newId();
      await injections.record({ id, publisher: kind.publisher, outcome: "ok", deadlineMs: 60_000 });
      return dead(kind, id);
    }),
  );
}

test("a filter of unknown ids covers no letter whose injection was recorded", async () => {
  const fixture = setup();
  const [, ended = [], endedOfGlobe = []] = await thirty(fixture);
  const known = await fiveKnown(fixture);
  const matched = async (filter: Partial<DeadFilter>) =>
    (await fixture.discards.count({ ...EVERYTHING, onlyUnknown: true, ...filter })).matched;
  expect([await matched({}), await matched({ onlyUnknown: false })]).toEqual([30, 35]);
  expect(await matched({ publisher: globe, reason: "http_404" })).toBe(6);
  const unknownOnes = { code: "campaign_ended", onlyUnknown: true };
  expect(await listed(fixture, unknownOnes)).toEqual([...ended, ...endedOfGlobe].toSorted());
  const replay = await startReplay(fixture, { publisher: globe, onlyUnknown: true });
  expect(await replayToEnd(fixture, replay)).toHaveLength(12);
  const discard = await startDiscard(fixture, { onlyUnknown: true });
  expect((await fixture.discards.runBatch(discard, 100, BULK_GRACE_MS)).moved).toHaveLength(18);
  expect(await fixture.discards.find(discard)).toMatchObject({ of: "dead", filter: { onlyUnknown: true } });
  expect(await listed(fixture, {})).toEqual(known.toSorted());
  expect(await matched({})).toBe(0);
  expect(await redis.keys(fixture.key("dead-unknown*"))).toEqual([]);
});

test("unknown ids of letters that died under an older version are found after the first sweep", async () => {
  const fixture = setup();
  await thirty(fixture);
  await fiveKnown(fixture);
  await redis.del(await redis.keys(fixture.key("dead-unknown*")));
  expect(await listed(fixture, { onlyUnknown: true })).toEqual([]);
  await fixture.maintenance.sweep(3_600_000);
  expect(await listed(fixture, { onlyUnknown: true })).toHaveLength(30);
});

test("a list by publisher finds what lies behind a hundred others", async () => {
  const fixture = setup();
  const { discards } = fixture;
  const own = await startDiscard(fixture, { publisher: globe });
  for (let one = 0; one < 230; one += 1) {
    await startDiscard(fixture, { publisher: acme });
  }
  const latest = await discards.latest(100, ({ filter }) => filter.publisher === globe);
  expect(latest.map(({ id }) => id)).toEqual([own]);
  expect(await discards.latest(100)).toHaveLength(100);
  expect(await discards.latest(500)).toHaveLength(231);
});

test("a bulk replay counts what became of each of its thirty letters", async () => {
  const fixture = setup();
  const { replays, settle, die, discards } = fixture;
  await thirty(fixture);
  const replay = await startReplay(fixture);
  const outcomes = [
    (id: AdResponseId) => settle(id, "deliver"),
    (id: AdResponseId) => die(id, 1, { reason: "http_422", code: "campaign_ended" }),
    (id: AdResponseId) => die(id, 1, { reason: "http_404", code: "unknown_ad" }),
    (id: AdResponseId) => settle(id, "refuse"),
    (id: AdResponseId) => settle(id, "retry"),
  ];
  const moved = await replayToEnd(fixture, replay, async (id, at) => outcomes[at % 5]?.(id));
  expect(moved).toHaveLength(30);
  const counted = { delivered: 6, refused: 6, discarded: 0, dead: { http_422: 6, http_404: 6 }, waiting: 6 };
  expect(await replays.find(replay)).toMatchObject({ state: "completed", replayed: 30, outcomes: counted });
  expect((await fixture.audit.page(1, undefined)).entries).toMatchObject([
    { by: "alice", action: "replays_end", replayId: replay, details: { replayed: 30 } },
  ]);
  const [waiting = newId(), lost = newId()] = moved.filter((_id, at) => at % 5 === 4);
  await fixture.deadLetters.discard(waiting, "alice", "stale");
  await redis.del(fixture.parts.queue.payloadKey(lost));
  await fixture.outbox.losePayload(lost);
  const later = { ...counted, discarded: 1, dead: { ...counted.dead, payload_lost: 1 }, waiting: 4 };
  expect((await replays.find(replay))?.outcomes).toEqual(later);
  // What died again belongs to no replay any more.
  await fixture.deadLetters.replay(lost, "alice");
  await settle(lost, "deliver");
  await startDiscard(fixture).then((id) => discards.runBatch(id, 100, BULK_GRACE_MS));
  expect((await replays.find(replay))?.outcomes).toEqual(later);
});

test("an outcome that is booked twice is counted once, and late deliveries don't count again", async () => {
  const fixture = setup();
  const { replays, die, settle, completer } = fixture;
  const id = await fixture.dead({ publisher: acme, reason: "http_404", code: "" });
  const replay = await startReplay(fixture);
  await replayToEnd(fixture, replay, async (letter) => {
    const kind = { reason: "http_422", code: "" } as const;
    await Promise.all([die(letter, 1, kind), die(letter, 1, kind)]);
  });
  await completer.settle(settlementOf(id, "deliver", { attemptsBefore: 2 }));
  await settle(id, "deliver");
  expect((await replays.find(replay))?.outcomes).toMatchObject({
    delivered: 0,
    dead: { http_422: 1 },
    waiting: 0,
  });
});

test("outcomes after the expiry of a replay's record leave no record behind", async () => {
  const fixture = setup();
  const id = await fixture.dead({ publisher: acme, reason: "http_404", code: "" });
  const replay = await startReplay(fixture);
  await replayToEnd(fixture, replay);
  await redis.del(fixture.key(`replay:${replay}`));
  expect(await fixture.settle(id, "deliver")).toBe("booked");
  expect(await redis.exists(fixture.key(`replay:${replay}`))).toBe(0);
});

test.each(["die", "refuse"] as const)(
  "a bulk replay stops by itself once most letters end with %s, and the others stay dead",
  async (event) => {
    const fixture = setup();
    await thirty(fixture);
    const replay = await startReplay(fixture, {}, { share: 0.5, least: 10 });
    const moved = await replayToEnd(fixture, replay, (id, at) =>
      fixture.settle(id, at % 2 === 0 ? event : "deliver"),
    );
    expect(moved).toHaveLength(10);
    const { state, outcomes, endedAtMs } = (await fixture.replays.find(replay)) ?? {};
    expect({ state, delivered: outcomes?.delivered }).toEqual({ state: "stopped", delivered: 5 });
    expect(endedAtMs).toBeGreaterThan(0);
    expect(await fixture.replays.running()).toEqual([]);
    expect(await redis.pttl(fixture.key(`replay:${replay}`))).toBeGreaterThan(0);
    expect((await fixture.replays.count(EVERYTHING)).matched).toBe(event === "die" ? 25 : 20);
    expect(await fixture.replays.cancel(replay, "bob")).toBe("ended");
    expect((await fixture.audit.page(1, undefined)).entries).toMatchObject([
      { by: "adrelay", action: "replays_stop", replayId: replay, details: { failed: 5, ended: 10 } },
    ]);
  },
);

test.each([
  ["the share is not reached", { share: 0.51, least: 10 }],
  ["fewer than the least number ended", { share: 0.1, least: 31 }],
  ["it has no rule", undefined],
] as const)("a bulk replay goes on to the end if %s", async (_why, stop) => {
  const fixture = setup();
  await thirty(fixture);
  const replay = await startReplay(fixture, {}, stop);
  const moved = await replayToEnd(fixture, replay, (id, at) =>
    fixture.settle(id, at % 2 === 0 ? "die" : "deliver"),
  );
  expect(moved).toHaveLength(30);
  expect(await fixture.replays.find(replay)).toMatchObject({ state: "completed", stop });
});

test("a bulk replay waits for its sample, but not for long", async () => {
  const fixture = setup();
  const { replays, key } = fixture;
  await thirty(fixture);
  const replay = await startReplay(fixture, {}, { share: 0.5, least: 10 });
  let moved = 0;
  await eventually(async () => {
    moved += (await replays.runBatch(replay, 100, BULK_GRACE_MS)).moved.length;
    expect(moved).toBe(10);
  });
  expect((await replays.runBatch(replay, 100, BULK_GRACE_MS)).moved).toEqual([]);
  await redis.hincrby(key(`replay:${replay}`), "updated", -10_000);
  expect((await replays.runBatch(replay, 100, BULK_GRACE_MS)).moved).toHaveLength(20);
});

test("a bulk discard ends the letters of its filter, takes turns, and is audited from start to end", async () => {
  const fixture = setup();
  const { discards, outbox, audit, find, snapshot } = fixture;
  const [long = [], ended = [], endedOfGlobe = []] = await thirty(fixture);
  const id = await startDiscard(fixture, { code: "campaign_ended" });
  const first = await discards.runBatch(id, 4, BULK_GRACE_MS);
  const ofFirst = first.moved.map(({ id: letter }) => letter);
  expect(ofFirst.filter((letter) => ended.includes(letter))).toHaveLength(2);
  expect(ofFirst.filter((letter) => endedOfGlobe.includes(letter))).toHaveLength(2);
  // The worker that made this step was killed, and another one goes on.
  const second = await discards.runBatch(id, 100, BULK_GRACE_MS);
  expect(second).toMatchObject({ state: "completed" });
  expect(await discards.runBatch(id, 100, BULK_GRACE_MS)).toMatchObject({ state: "completed", moved: [] });
  const all = [...first.moved, ...second.moved];
  expect(all.map((task) => task.action)).toEqual(Array.from({ length: 12 }, () => "remove"));
  expect((await outbox.leaseDue(100, 60_000)).map(({ text }) => text).toSorted()).toEqual(
    all.map(({ text }) => text).toSorted(),
  );
  for (const letter of [...ended, ...endedOfGlobe]) {
    expect(await find(letter)).toMatchObject({ state: "discarded", endedAtMs: expect.any(Number) });
    expect(await redis.pttl(fixture.key(`e:${letter.replaceAll("-", "")}`))).toBeGreaterThan(0);
  }
  expect(await find(long[0] ?? newId())).toMatchObject({ state: "dead" });
  expect(await discards.find(id)).toMatchObject({ state: "completed", matched: 12, discarded: 12 });
  expect((await snapshot()).totals.get("discarded")?.map(({ value }) => value)).toEqual([6, 6]);
  expect((await audit.page(10, undefined)).entries).toMatchObject([
    { by: "alice", action: "discards_end", discardId: id, details: { discarded: 12 } },
    {
      by: "alice",
      action: "discards_start",
      discardId: id,
      replayId: undefined,
      details: { code: "campaign_ended", why: "the campaign has ended", matched: 12, reason: null },
    },
  ]);
});

test("a cancelled bulk discard leaves the rest dead", async () => {
  const fixture = setup();
  const { discards, replays } = fixture;
  await thirty(fixture);
  const id = await startDiscard(fixture);
  expect((await discards.runBatch(id, 7, BULK_GRACE_MS)).moved).toHaveLength(7);
  expect(await discards.cancel(id, "bob")).toBe("cancelled");
  expect(await discards.runBatch(id, 7, BULK_GRACE_MS)).toMatchObject({ state: "cancelled", moved: [] });
  expect(await discards.find(id)).toMatchObject({ state: "cancelled", discarded: 7, createdBy: "alice" });
  expect((await replays.count(EVERYTHING)).matched).toBe(23);
  expect(await discards.cancel(id, "bob")).toBe("ended");
  expect([await replays.cancel(id, "bob"), await replays.find(id)]).toEqual(["unknown", undefined]);
  expect((await fixture.audit.page(1, undefined)).entries).toMatchObject([
    { by: "bob", action: "discards_cancel", discardId: id },
  ]);
});

test("a bulk discard that is bounded by its count spares a letter that died right after it", async () => {
  const fixture = setup();
  await thirty(fixture);
  const { matched, beforeMs } = await fixture.discards.count(EVERYTHING);
  const spared = await fixture.dead({ publisher: acme, reason: "http_422", code: "campaign_ended" });
  const id = await startDiscard(fixture, { untilMs: beforeMs });
  expect((await fixture.discards.runBatch(id, 100, BULK_GRACE_MS)).moved).toHaveLength(matched);
  expect(await listed(fixture, {})).toEqual([spared]);
});

test("a bulk replay that an older gateway started is carried out", async () => {
  const fixture = setup();
  const { replays, maintenance, key } = fixture;
  await thirty(fixture);
  const replay = await startReplay(fixture, { reason: "http_404" });
  await redis.hdel(key(`replay:${replay}`), "code", "stop_share", "stop_least");
  await redis.smove(key("replays-running:3"), key("replays-running"), replay);
  await eventually(async () => expect(await maintenance.runBulkChanges()).toBe(false));
  expect(await replays.find(replay)).toMatchObject({ state: "completed", replayed: 6, stop: undefined });
});

test("a filter that older workers don't know is out of their reach", async () => {
  const fixture = setup();
  await thirty(fixture);
  await startReplay(fixture, { code: "campaign_ended", onlyUnknown: true });
  await startDiscard(fixture, { onlyUnknown: true });
  const older = ["replays-running", "replays-running:2", "discards-running"].map(fixture.key);
  expect(await redis.exists(...older)).toBe(0);
});

test("bulk replays and bulk discards that run together change each letter once", async () => {
  const fixture = setup();
  const { replays, discards, maintenance, snapshot } = fixture;
  const ids = (await thirty(fixture)).flat();
  const [replay, discard] = [await startReplay(fixture), await startDiscard(fixture)];
  await eventually(async () => expect(await maintenance.runBulkChanges()).toBe(false));
  const [replayed, discarded] = [await replays.find(replay), await discards.find(discard)];
  expect((replayed?.replayed ?? 0) + (discarded?.discarded ?? 0)).toBe(ids.length);
  expect([replayed?.state, discarded?.state]).toEqual(["completed", "completed"]);
  const { states } = await snapshot();
  expect(states.reduce((sum, { value }) => sum + value, 0)).toBe(ids.length);
  expect(await replays.running()).toEqual([]);
  expect(await discards.running()).toEqual([]);
});

/**
 * Adoptions on a real Redis. They guard against an ad response that one index or counter shows for its old publisher and
 * another one for its new publisher, and against an attempt that its adoption disturbs.
 */
import { parseDeliveryJob, publisherIdSchema } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import type { JobEnd } from "../src/delivery/job-completer.ts";
import { type AdoptionPlace, gonePublishers } from "../src/publishers/adoption.ts";
import { NO_JOBS, newJob, openTestQueue } from "./queue-fixture.ts";
import { EVERYTHING, newId, newIdIn, openTestRedis, publisher } from "./store-fixture.ts";

const other = publisherIdSchema.parse("2-other");
const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

function setup() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  const { acknowledgments, adoptions, queue, parts, key, snapshot } = fixture;
  const accepted = async (body = "{}") => {
    const job = newJob(body);
    await acknowledgments.accept({ job, textHash: "hash" });
    return job.adResponseId;
  };
  /** All batches; resolves with how many there were, and with the sums. `between` is called after each batch. */
  const adoptAll = async (limit = 100, between = async (_batches: number): Promise<unknown> => undefined) => {
    const sum = { batches: 0, awaiting: 0, queued: 0, dead: 0, held: 0 };
    let place: AdoptionPlace | undefined;
    do {
      const batch = await adoptions.adoptBatch({ from: publisher, to: other, by: "alice", place, limit });
      sum.batches += 1;
      sum.awaiting += batch.adopted.awaiting;
      sum.queued += batch.adopted.queued;
      sum.dead += batch.adopted.dead;
      sum.held += batch.held;
      place = batch.next;
      await between(sum.batches);
    } while (place !== undefined);
    return sum;
  };
  const publisherOfJob = async (id: Awaited<ReturnType<typeof accepted>>) =>
    parseDeliveryJob(JSON.parse((await redis.hget(queue.payloadKey(id), "data")) ?? "{}"))?.publisher;
  const park = (id: Awaited<ReturnType<typeof accepted>>, dueAtMs: number) =>
    parts.circuits.park({
      account: undefined,
      member: { publisher, id },
      place: { kind: "by_time", dueAtMs },
      notify: undefined,
    });
  const balance = async () => {
    const { states, totals } = await snapshot();
    const sum = (counts: readonly { value: number }[] = []) =>
      counts.reduce((all, { value }) => all + value, 0);
    const filled = totals.get("recorded")?.filter(({ label }) => label === "ok");
    return sum(filled) + sum(totals.get("unknown")) - sum(states);
  };
  const parked = (id: string) => redis.zrange(key(`parked:${id}`), "0", "-1", "WITHSCORES");
  return { ...fixture, accepted, adoptAll, publisherOfJob, park, parked, balance };
}

const memberOf = (id: string) => id.replaceAll("-", "");

test("entry, job, indexes and counters change together, and times stay", async () => {
  const fixture = setup();
  const { accepted, adoptAll, publisherOfJob, park, parked, find, snapshot, balance, key } = fixture;
  const text = JSON.stringify({ llm_response: '{"v":1,"publisher":"acme"} %1 ä' });
  const queued = await accepted(text);
  await park(queued, 42);
  const awaiting = await newIdIn(fixture, "awaiting");
  const dead = await newIdIn(fixture, "dead");
  const before = await find(dead);
  expect(await adoptAll()).toEqual({ batches: 3, awaiting: 1, queued: 1, dead: 1, held: 0 });
  for (const id of [queued, awaiting, dead]) {
    expect(await find(id)).toMatchObject({ publisher: other });
  }
  expect(await find(dead)).toEqual({ ...before, publisher: other, textHash: undefined });
  expect(await publisherOfJob(queued)).toBe(other);
  expect(await parked(publisher)).toEqual([]);
  expect(await parked(other)).toEqual([memberOf(queued), "42"]);
  expect(await redis.smembers(key("dead-kinds"))).toEqual([`${other}|http_400`]);
  const { states, deadLetters, totals } = await snapshot();
  expect(
    states
      .filter(({ value }) => value !== 0)
      .map(({ publisher: owner, label }) => `${owner} ${label}`)
      .sort(),
  ).toEqual([`${other} awaiting`, `${other} dead`, `${other} queued`]);
  expect(deadLetters).toEqual([{ publisher: other, label: "http_400", value: 1 }]);
  expect(totals.get("adopted")).toEqual([{ publisher: other, label: "", value: 3 }]);
  expect(totals.get("given")).toEqual([{ publisher, label: "", value: 3 }]);
  expect(await balance()).toBe(0);
  const body = JSON.parse((await redis.hget(fixture.queue.payloadKey(queued), "data")) ?? "{}").body;
  expect(body).toBe(text);
});

test("many are adopted in batches, each with an audit entry, and a repeat adopts nothing", async () => {
  const { accepted, adoptAll, audit, balance } = setup();
  for (let count = 0; count < 7; count += 1) {
    await accepted();
  }
  expect(await adoptAll(3)).toEqual({ batches: 5, awaiting: 0, queued: 7, dead: 0, held: 0 });
  const { entries } = await audit.page(10, undefined);
  expect(entries.map(({ action, by, details }) => [action, by, details["queued"]])).toEqual([
    ["adopt", "alice", 1],
    ["adopt", "alice", 3],
    ["adopt", "alice", 3],
  ]);
  expect(entries[0]?.details).toEqual({ from: publisher, to: other, awaiting: 0, queued: 1, dead: 0 });
  expect(await adoptAll(3)).toMatchObject({ queued: 0, held: 0 });
  expect((await audit.page(10, undefined)).entries).toHaveLength(3);
  expect(await balance()).toBe(0);
});

test("a batch of large texts is adopted in several scripts", async () => {
  const { accepted, adoptAll, audit } = setup();
  for (let count = 0; count < 5; count += 1) {
    await accepted("x".repeat(1_000_000));
  }
  expect(await adoptAll()).toMatchObject({ batches: 3, queued: 5 });
  const { entries } = await audit.page(10, undefined);
  expect(entries.map(({ details }) => details["queued"])).toEqual([2, 3]);
});

test("what moves on to its next state during an adoption is adopted in that state", async () => {
  const fixture = setup();
  const { accepted, adoptAll, find, acknowledgments, injections, settle, snapshot } = fixture;
  const [early, late] = [newId(), newId()];
  await injections.record({ id: early, publisher, outcome: "ok", deadlineMs: 60_000 });
  await injections.record({ id: late, publisher, outcome: "ok", deadlineMs: 120_000 });
  const [dying, queued] = [await accepted(), await accepted()];
  const sum = await adoptAll(1, async (batches) => {
    // The first batch had the latest deadline.
    if (batches === 1) {
      await acknowledgments.accept({ job: { ...newJob(), adResponseId: early }, textHash: "hash" });
      await settle(dying, "die");
    }
  });
  expect(sum).toMatchObject({ awaiting: 1, queued: 2, dead: 1 });
  for (const id of [early, late, dying, queued]) {
    expect(await find(id)).toMatchObject({ publisher: other });
  }
  const { states } = await snapshot();
  expect(states.filter((one) => one.publisher === publisher && one.value > 0)).toEqual([]);
});

test("what an attempt holds is left as it is, and adopted after the attempt", async () => {
  const { accepted, adoptAll, work, find, settle, queue, publisherOfJob, balance } = setup();
  const id = await accepted();
  const { promise: outcome, resolve: answer } = Promise.withResolvers<JobEnd>();
  const worker = work(() => outcome);
  await eventually(async () => expect((await queue.depths()).active).toBe(1));
  expect(await adoptAll()).toMatchObject({ queued: 0, held: 1 });
  expect(await find(id)).toMatchObject({ publisher, state: "queued" });
  expect(await publisherOfJob(id)).toBe(publisher);
  await settle(id, "retry");
  answer({ kind: "delayed", delayMs: 60_000 });
  await eventually(async () => expect(await queue.depths()).toEqual({ ...NO_JOBS, delayed: 1 }));
  await worker.stop();
  expect(await adoptAll()).toMatchObject({ queued: 1, held: 0 });
  expect(await publisherOfJob(id)).toBe(other);
  expect(await balance()).toBe(0);
});

test("an adopted acknowledgment that its new publisher repeats is a repeat, and is delivered", async () => {
  const { accepted, acknowledgments, adoptAll, work, find, starter, queue } = setup();
  const id = await accepted();
  const first = await accepted();
  await adoptAll();
  // A fingerprint contains the publisher, so that of the same text differs.
  const repeated = { ...newJob(), adResponseId: id, publisher: other };
  expect(await acknowledgments.accept({ job: repeated, textHash: "hash of the other" })).toMatchObject({
    kind: "repeat",
    entry: { state: "queued", publisher: other },
  });
  const begun: unknown[] = [];
  work(async (job, { textHash, payloadKey, prefetched }) => {
    begun.push(prefetched, await starter.begin({ job, textHash, payloadKey, prefetched }));
    return { kind: "completed", finalAttempt: undefined };
  }, 1);
  await eventually(async () => expect(await queue.depths()).toEqual(NO_JOBS));
  const asked = { kind: "queued", entry: { attempts: 0 } };
  expect(begun).toMatchObject([undefined, asked, undefined, asked]);
  expect(await find(first)).toMatchObject({ state: "queued", publisher: other });
});

test("an adopted dead letter is replayed and discarded as its new publisher's", async () => {
  const fixture = setup();
  const { adoptAll, deadLetters, find, replays } = fixture;
  const [replayed, discarded] = [await newIdIn(fixture, "dead"), await newIdIn(fixture, "dead")];
  await adoptAll();
  const filter = { reason: undefined, code: undefined, sinceMs: undefined, untilMs: undefined };
  expect(await replays.count({ ...filter, publisher })).toMatchObject({ matched: 0 });
  expect(await replays.count({ ...filter, publisher: other })).toMatchObject({ matched: 2 });
  expect(await replays.count({ ...filter, publisher, code: "some_code" })).toMatchObject({ matched: 0 });
  expect(await replays.count({ ...filter, publisher: other, code: "some_code" })).toMatchObject({
    matched: 2,
  });
  expect((await deadLetters.replay(replayed, "alice")).kind).toBe("booked");
  expect((await deadLetters.discard(discarded, "alice", "stale")).kind).toBe("booked");
  expect(await find(replayed)).toMatchObject({ state: "queued", publisher: other });
  expect(await find(discarded)).toMatchObject({ state: "discarded", publisher: other });
});

test.each(["started", "only counted"] as const)(
  "what is adopted after a bulk discard was %s is not discarded, and keeps its time of death",
  async (how) => {
    const fixture = setup();
    const { adoptAll, find, parts } = fixture;
    const { discards } = parts;
    const own = await newIdIn(fixture, "dead");
    await adoptAll();
    const adopted = await newIdIn(fixture, "dead");
    const before = await find(adopted);
    const filter = { ...EVERYTHING, publisher: other };
    const start = (untilMs: number | undefined) =>
      discards.start({ filter: { ...filter, untilMs }, by: "alice", why: "old" });
    const counted = await discards.count(filter);
    const started = how === "started" ? await start(undefined) : undefined;
    await adoptAll();
    const id = started ?? (await start(counted.beforeMs));
    expect(await discards.runBatch(id, 100, 0)).toMatchObject({ state: "completed" });
    expect(await discards.find(id)).toMatchObject({ matched: 1, discarded: 1 });
    expect(await find(own)).toMatchObject({ state: "discarded" });
    expect(await find(adopted)).toEqual({ ...before, publisher: other, textHash: undefined });
    expect(await discards.count(filter)).toMatchObject({ matched: 1 });
  },
);

test("a bulk discard of queued acknowledgments spares what is adopted after its count", async () => {
  const { accepted, adoptAll, parts, find, maintenance } = setup();
  const { queuedDiscards } = parts;
  const id = await accepted();
  const before = await find(id);
  const filter = { ...EVERYTHING, publisher: other };
  const { beforeMs: untilMs } = await queuedDiscards.count(filter);
  await adoptAll();
  await queuedDiscards.start({ filter: { ...filter, untilMs }, by: "alice", why: "old" });
  await eventually(async () => expect(await maintenance.runBulkChanges()).toBe(false));
  expect(await find(id)).toEqual({ ...before, publisher: other, textHash: undefined });
  expect(await queuedDiscards.count(filter)).toMatchObject({ matched: 1 });
});

test("ended ad responses and those of other publishers stay as they are", async () => {
  const fixture = setup();
  const { adoptAll, find } = fixture;
  const ended = await Promise.all(
    (["delivered", "refused", "missed", "unacknowledgeable"] as const).map((state) =>
      newIdIn(fixture, state),
    ),
  );
  const third = newId();
  const owner = publisherIdSchema.parse("third");
  await fixture.injections.record({ id: third, publisher: owner, outcome: "ok", deadlineMs: 60_000 });
  expect(await adoptAll()).toMatchObject({ awaiting: 0, queued: 0, dead: 0 });
  for (const id of ended) {
    expect(await find(id)).toMatchObject({ publisher });
  }
  expect(await find(third)).toMatchObject({ publisher: owner });
});

test("a publisher is gone if it has ad responses that need it, and isn't configured", () => {
  const states = [
    { publisher, label: "queued", value: 2 },
    { publisher, label: "delivered", value: 5 },
    { publisher: other, label: "delivered", value: 5 },
    { publisher: "configured", label: "dead", value: 5 },
  ];
  expect(gonePublishers({ states }, [publisherIdSchema.parse("configured")])).toEqual([
    { publisher, counts: { dead: 0, queued: 2, awaiting: 0 } },
  ]);
});

/**
 * Bulk discards of queued acknowledgments on a real Redis, with jobs of a real queue. They guard against a discard of more than was
 * asked for, against one that leaves some behind, and against a delivered acknowledgment that is booked as discarded.
 */
import { type AdResponseId, type DeliveryJob, type PublisherId, publisherIdSchema } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, expect, test } from "vitest";
import type { DeadFilter } from "../src/index.ts";
import { memberOf } from "../src/redis/keys.ts";
import {
  countEntryBytes,
  EVERYTHING,
  jobOf,
  newId,
  openTestRedis,
  openTestStore,
  usedBytes,
} from "./store-fixture.ts";

const acme = publisherIdSchema.parse("acme");
const globe = publisherIdSchema.parse("globe");
const UNKNOWN = { ...EVERYTHING, onlyUnknown: true };

const { redis, server } = await openTestRedis();
const subscriber = new Redis(server.url);
afterAll(() => subscriber.disconnect());

function setup() {
  const fixture = openTestStore(redis);
  const { acknowledgments, injections, parts } = fixture;
  const accept = async (
    publisher: PublisherId,
    more: Partial<Pick<DeliveryJob, "body" | "replyTo">> = {},
  ) => {
    const id = newId();
    await acknowledgments.accept({ job: { ...jobOf(id), publisher, ...more }, textHash: "hash" });
    return id;
  };
  /** Its injection was recorded, as all of a publisher's own are. */
  const known = async (publisher: PublisherId = acme) => {
    const id = newId();
    await injections.record({ id, publisher, outcome: "ok", deadlineMs: 60_000 });
    await acknowledgments.accept({ job: { ...jobOf(id), publisher }, textHash: "hash" });
    return id;
  };
  const start = (filter: DeadFilter) => parts.queuedDiscards.start({ filter, by: "alice", why: "invented" });
  const toEnd = () =>
    eventually(async () => expect(await fixture.maintenance.runBulkChanges()).toBe(false), 20_000);
  const lock = (id: AdResponseId) => redis.set(parts.queue.lockKey(id), "a worker's");
  const unlock = (id: AdResponseId) => redis.del(parts.queue.lockKey(id));
  const statesOf = async (ids: readonly AdResponseId[]) =>
    new Set(await Promise.all(ids.map(async (id) => (await fixture.find(id))?.state)));
  return { ...fixture, queued: parts.queuedDiscards, accept, known, start, toEnd, lock, unlock, statesOf };
}

const times = <T>(count: number, make: () => Promise<T>) => Promise.all(Array.from({ length: count }, make));

test("a bulk discard ends exactly the queued ones with unknown ids, and their texts leave Redis", async () => {
  const { queued, discards, accept, known, start, toEnd, statesOf, parts, audit, key, ...fixture } = setup();
  const invented = await times(89, () => accept(acme));
  const own = [...(await times(5, () => known(acme))), ...(await times(5, () => known(globe)))];
  expect(await queued.count(UNKNOWN)).toMatchObject({ matched: 89, isComplete: true });
  expect(await queued.count({ ...UNKNOWN, publisher: globe })).toMatchObject({ matched: 0 });
  const id = await start({ ...UNKNOWN, publisher: acme });
  await toEnd();
  expect(await statesOf(invented)).toEqual(new Set(["discarded"]));
  expect(await statesOf(own)).toEqual(new Set(["queued"]));
  for (const one of invented) {
    expect(await redis.exists(parts.queue.payloadKey(one))).toBe(0);
  }
  expect(await discards.find(id)).toMatchObject({
    of: "queued",
    state: "completed",
    matched: 89,
    discarded: 89,
    filter: { publisher: acme, onlyUnknown: true },
  });
  expect(await discards.latest(10)).toMatchObject([{ id }]);
  expect(await usedBytes(fixture)).toEqual(await countEntryBytes(redis, { key }));
  expect((await audit.page(10, undefined)).entries).toMatchObject([
    { by: "alice", action: "discards_end", publisher: "acme", discardId: id, details: { discarded: 89 } },
    {
      by: "alice",
      action: "discards_start",
      discardId: id,
      details: { of: "queued", unknown: true, publisher: "acme", why: "invented", matched: 89 },
    },
  ]);
});

test("a step with large texts is made in several scripts, and none is left out", async () => {
  const { queued, discards, accept, start, lock, unlock, statesOf, parts } = setup();
  const body = "x".repeat(900_000);
  const [held = newId(), ...large] = await times(8, () => accept(acme, { body }));
  await lock(held);
  const id = await start(EVERYTHING);
  const members = large.flatMap((one) => [memberOf(one), parts.queue.payloadKey(one)]);
  const { entryPrefix, parkedPrefix } = parts.keys;
  const script = {
    keys: parts.keys.forBulk("discard_queued", id),
    args: [id, entryPrefix, parkedPrefix, 0, 60_000, "held", 2_000_000, ...members],
  };
  expect(await parts.run("dead-letters/discard-queued", script)).toMatchObject([
    "running",
    { length: 3 },
    {},
    3,
  ]);
  // It hasn't looked at all, so the place is still the first one.
  expect((await queued.runBatch(id, 100, 0)).moved).toHaveLength(4);
  await unlock(held);
  expect(await queued.runBatch(id, 100, 0)).toMatchObject({ state: "completed", hasMore: false });
  expect(await statesOf([held, ...large])).toEqual(new Set(["discarded"]));
  expect(await discards.find(id)).toMatchObject({ matched: 8, discarded: 8 });
});

test("the search goes on where it was, whatever lies in between, and its count as well", async () => {
  const { queued, discards, accept, known, start, toEnd, statesOf } = setup();
  const first = await accept(globe);
  await times(2100, () => known(acme));
  const last = await accept(globe);
  expect(await queued.count({ ...EVERYTHING, publisher: globe })).toMatchObject({ matched: 2 });
  const some = { matched: 1, isComplete: false };
  expect(await queued.count({ ...EVERYTHING, publisher: globe }, 0)).toMatchObject(some);
  const id = await start({ ...EVERYTHING, publisher: globe });
  await toEnd();
  expect(await statesOf([first, last])).toEqual(new Set(["discarded"]));
  expect(await discards.find(id)).toMatchObject({ state: "completed", discarded: 2 });
  expect(await queued.count(EVERYTHING)).toMatchObject({ matched: 2100 });
});

test("what comes after the start stays, and so does what is out of the time span", async () => {
  const { queued, discards, accept, start, toEnd, statesOf, snapshot } = setup();
  const passed = (atMs = 0) =>
    eventually(async () => expect((await snapshot()).nowMs).toBeGreaterThanOrEqual(atMs));
  const old = await accept(acme);
  const { beforeMs } = await queued.count(UNKNOWN);
  await passed(beforeMs);
  const young = await accept(acme);
  await start({ ...UNKNOWN, untilMs: beforeMs });
  await toEnd();
  expect([...(await statesOf([old])), ...(await statesOf([young]))]).toEqual(["discarded", "queued"]);
  const id = await start({ ...UNKNOWN, sinceMs: beforeMs });
  await passed(((await discards.find(id))?.createdAtMs ?? 0) + 1);
  const later = await accept(acme);
  await toEnd();
  expect([...(await statesOf([young])), ...(await statesOf([later]))]).toEqual(["discarded", "queued"]);
});

test("one that an attempt holds is discarded once the attempt has failed, and never if it delivered", async () => {
  const { queued, discards, accept, start, lock, unlock, find, settle } = setup();
  const [failing, delivering, free] = [await accept(acme), await accept(acme), await accept(acme)];
  await Promise.all([lock(failing), lock(delivering)]);
  const id = await start(UNKNOWN);
  const step = () => queued.runBatch(id, 100, 0);
  expect(await step()).toMatchObject({ state: "running", hasMore: false, moved: [{ id: free }] });
  expect(await step()).toMatchObject({ state: "running", moved: [] });
  await settle(failing, "retry");
  await settle(delivering, "deliver");
  await Promise.all([unlock(failing), unlock(delivering)]);
  expect(await step()).toMatchObject({ state: "completed", moved: [{ id: failing }] });
  expect([(await find(failing))?.state, (await find(delivering))?.state]).toEqual(["discarded", "delivered"]);
  expect(await discards.find(id)).toMatchObject({ matched: 3, discarded: 2 });
});

test("one that dies during the discard and is put back is not discarded any more", async () => {
  const { queued, discards, accept, start, lock, unlock, find, settle, deadLetters, snapshot } = setup();
  const held = await accept(acme);
  await lock(held);
  const id = await start(UNKNOWN);
  const { createdAtMs = 0 } = (await discards.find(id)) ?? {};
  expect(await queued.runBatch(id, 100, 0)).toMatchObject({ state: "running" });
  await settle(held, "die");
  await eventually(async () => expect((await snapshot()).nowMs).toBeGreaterThan(createdAtMs));
  await deadLetters.replay(held, "alice");
  await unlock(held);
  expect(await queued.runBatch(id, 100, 0)).toMatchObject({ state: "completed", moved: [] });
  expect((await find(held))?.state).toBe("queued");
});

test("workers that take the same step discard and count each one once", async () => {
  const { queued, discards, accept, start, snapshot } = setup();
  await times(60, () => accept(acme));
  const id = await start(UNKNOWN);
  const moved: string[] = [];
  await eventually(async () => {
    const batches = await Promise.all([1, 2, 3].map(() => queued.runBatch(id, 7, 0)));
    moved.push(...batches.flatMap((batch) => batch.moved.map(({ text }) => text)));
    expect(batches.at(-1)?.state).toBe("completed");
  });
  expect([moved.length, new Set(moved).size]).toEqual([60, 60]);
  expect(await discards.find(id)).toMatchObject({ discarded: 60 });
  const { states } = await snapshot();
  expect(states.filter(({ value }) => value !== 0)).toMatchObject([{ label: "discarded", value: 60 }]);
});

test("a cancelled one leaves the rest queued, and no worker goes on with it", async () => {
  const { queued, discards, accept, start, maintenance } = setup();
  await times(20, () => accept(acme));
  const id = await start(UNKNOWN);
  expect((await queued.runBatch(id, 7, 0)).moved).toHaveLength(7);
  expect(await discards.cancel(id, "bob")).toBe("cancelled");
  expect(await maintenance.runBulkChanges()).toBe(true);
  expect(await maintenance.runBulkChanges()).toBe(false);
  expect(await discards.find(id)).toMatchObject({ state: "cancelled", discarded: 7 });
  expect(await queued.count(UNKNOWN)).toMatchObject({ matched: 13 });
});

test("a caller that waits hears of the discard", async () => {
  const { accept, start, toEnd } = setup();
  const channel = `adrelay:outcomes:${newId()}`;
  const heard = new Promise<string>((resolve) => subscriber.once("message", (_name, text) => resolve(text)));
  await subscriber.subscribe(channel);
  const id = await accept(acme, { replyTo: channel });
  await start(UNKNOWN);
  await toEnd();
  expect(JSON.parse(await heard)).toMatchObject({ adResponseId: id, event: "discard", publisher: "acme" });
});

test("a page of queued ones with unknown ids has no others", async () => {
  const { acknowledgments, accept, known } = setup();
  const invented = await accept(acme);
  await known(acme);
  const question = { ...UNKNOWN, state: "queued", limit: 10, after: undefined } as const;
  expect((await acknowledgments.page(question)).entries).toMatchObject([{ id: invented }]);
});

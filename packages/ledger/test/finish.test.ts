/**
 * Ending jobs on a real Redis: booked as `Ledger.settle` books, before the queue hears of it, and with a look at the next job
 * that leaves to `Ledger.begin` whatever is out of order. The queue is the least that one can be; the worker's tests have
 * the real one.
 */
import { type AdResponseId, publisherIdSchema } from "@adrelay/contract";
import { decideTransition, ENTRY_STATES, type EntryState } from "@adrelay/core";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { Finisher, type FinishRequest, type LastWord, LedgerRefusalError } from "../src/index.ts";
import { type BooksFixture, fire, LONG_MS, openBooks, PATHS, publisher } from "./books-fixture.ts";

const TOKEN = "token";
/** A job is a hash with its lock; those that wait are a list. */
const PLAIN_QUEUE = `
  local function finishJob(keys, prefix, id, token, fetchNext, timestamp)
    if redis.call('HGET', prefix .. id, 'lock') ~= token then
      return -2
    end
    redis.call('DEL', prefix .. id)
    local nextId = fetchNext == '1' and redis.call('RPOP', keys[1])
    return nextId and {redis.call('HGETALL', prefix .. nextId), nextId} or 0
  end
  local function fetchedJob(answer)
    local job = type(answer) == 'table' and answer[1] or {}
    return job[2], job[4]
  end
`;
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
  const books = openBooks(redis);
  const base = `{adrelay:${books.partition}}:`;
  const jobPrefix = `${base}jobs:`;
  const completion = { lua: PLAIN_QUEUE, keys: [`${base}waiting`], jobPrefix };
  const { partition } = books;
  const finisher = new Finisher({ redis, completion, recordRetentionMs: LONG_MS, partition });
  const addJob = (id: AdResponseId, name = "hash") =>
    redis.hset(jobPrefix + id, { adResponseId: id, name, lock: TOKEN });
  const addWaiting = async (id: AdResponseId, name = "hash") => {
    await addJob(id, name);
    await redis.lpush(`${base}waiting`, id);
  };
  const hasJob = async (id: AdResponseId) => (await redis.exists(jobPrefix + id)) === 1;
  const finish = (id: AdResponseId, event?: LastWord["event"], more: Partial<FinishRequest["job"]> = {}) =>
    finisher.finish({
      job: { id, token: TOKEN, fetchNext: true, ...more },
      settlement: event === undefined ? undefined : lastWord(id, event),
    });
  const entryKey = (id: AdResponseId) => `${base}e:${id.replaceAll("-", "")}`;
  return { ...books, addJob, addWaiting, hasJob, finish, entryKey };
}

/** What `openBooks` settles. */
function lastWord(id: AdResponseId, event: LastWord["event"]): LastWord {
  return {
    id,
    event,
    label: event === "deliver" ? "ok" : "",
    code: "code",
    providerAckId: undefined,
    durationMs: 5,
    attemptsBefore: 0,
    delayMs: 0,
    isCounted: true,
    notify: undefined,
  };
}

async function newIdIn(books: BooksFixture, state: EntryState): Promise<AdResponseId> {
  const id = books.newId();
  for (const step of PATHS[state]) {
    await fire(books, id, step);
  }
  return id;
}

/** All that the books say, without ids and times. */
async function timeless({ ledger }: BooksFixture, id: AdResponseId): Promise<string> {
  const { totals, states, ...counts } = await ledger.snapshot();
  const text = JSON.stringify([await ledger.find(id), [...totals], states, counts]);
  return text.replaceAll(id, "ID").replaceAll(/\d{13}/g, "T");
}

test.each(
  ENTRY_STATES.flatMap((state) => (["deliver", "refuse"] as const).map((event) => [state, event] as const)),
)(
  "in state %s a job that ends with %s leaves the books as a settlement does, and goes",
  async (state, event) => {
    const [ended, settled] = [setup(), setup()];
    const [id, other] = [await newIdIn(ended, state), await newIdIn(settled, state)];
    await ended.addJob(id);
    const { booked, finished } = await ended.finish(id, event);
    expect(booked).toBe(await settled.settle(other, event));
    expect(await timeless(ended, id)).toBe(await timeless(settled, other));
    const transition = decideTransition(state, event);
    const after = (await ended.ledger.find(id))?.state ?? "absent";
    expect(after).toBe(transition.kind === "moved" ? transition.to : state);
    expect(finished).toBe(0);
    expect(await ended.hasJob(id)).toBe(false);
  },
);

test("a call that comes again since its reply got lost counts once", async () => {
  const fixture = setup();
  const id = await newIdIn(fixture, "queued");
  await fixture.addJob(id);
  expect(await fixture.finish(id, "deliver")).toMatchObject({ booked: "booked", finished: 0 });
  expect(await fixture.finish(id, "deliver")).toMatchObject({ booked: "same", finished: -2 });
  expect((await fixture.ledger.snapshot()).totals.get("delivered")).toMatchObject([{ value: 1 }]);
});

test("a job that ends without an attempt is finished, and nothing is booked", async () => {
  const fixture = setup();
  const id = await newIdIn(fixture, "delivered");
  await fixture.addJob(id);
  const before = await timeless(fixture, id);
  expect(await fixture.finish(id)).toEqual({ booked: undefined, finished: 0, look: undefined });
  expect(await timeless(fixture, id)).toBe(before);
  expect(await fixture.hasJob(id)).toBe(false);
});

test("a job whose outcome can't be booked stays, and those that end with it go", async () => {
  const fixture = setup();
  const ids = await Promise.all([1, 2, 3].map(() => newIdIn(fixture, "queued")));
  await Promise.all(ids.map((id) => fixture.addJob(id)));
  const [first, broken, last] = ids.map((id) => fixture.entryKey(id));
  await redis.del(broken ?? "");
  await redis.set(broken ?? "", "not a hash");
  const ended = await Promise.allSettled(ids.map((id) => fixture.finish(id, "deliver")));
  expect(ended[1]).toMatchObject({ status: "rejected", reason: expect.any(LedgerRefusalError) });
  expect([ended[0], ended[2]]).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
  expect(await Promise.all(ids.map((id) => fixture.hasJob(id)))).toEqual([false, true, false]);
  expect(await Promise.all([first, last].map((key) => redis.hget(key ?? "", "s")))).toEqual([
    "delivered",
    "delivered",
  ]);
});

test("an outcome is booked though its job's lock is lost, or though the queue's step raises", async () => {
  const fixture = setup();
  const [lost, broken] = [await newIdIn(fixture, "queued"), await newIdIn(fixture, "queued")];
  await fixture.addJob(lost);
  await redis.set(`{adrelay:${fixture.partition}}:jobs:${broken}`, "not a hash");
  const ended = await Promise.all([
    fixture.finish(lost, "deliver", { token: "another" }),
    fixture.finish(broken, "refuse"),
  ]);
  expect(ended).toMatchObject([
    { booked: "booked", finished: -2 },
    { booked: "booked", finished: expect.any(Error) },
  ]);
  expect(await fixture.ledger.find(lost)).toMatchObject({ state: "delivered" });
  expect(await fixture.ledger.find(broken)).toMatchObject({ state: "refused" });
});

test("the look at a fetched job that is queued is what the ledger tells when its attempt begins", async () => {
  const fixture = setup();
  const [id, next] = [await newIdIn(fixture, "queued"), await newIdIn(fixture, "queued")];
  await fixture.settle(next, "retry");
  await fixture.addJob(id);
  await fixture.addWaiting(next);
  const { look, finished } = await fixture.finish(id, "deliver");
  expect(finished).toMatchObject([expect.arrayContaining([next]), next]);
  expect(look?.publisher).toBe(publisher);
  const begun = await fixture.accept(next);
  expect(JSON.stringify(look?.begun).replace(/\d{13}/, "NOW")).toBe(
    JSON.stringify(begun).replace(/\d{13}/, "NOW"),
  );
});

test.each(ENTRY_STATES.filter((state) => state !== "queued"))(
  "nothing is told of a fetched job in state %s",
  async (state) => {
    const fixture = setup();
    const [id, next] = [await newIdIn(fixture, "queued"), await newIdIn(fixture, state)];
    await fixture.addJob(id);
    await fixture.addWaiting(next);
    const { look, finished } = await fixture.finish(id, "deliver");
    expect(finished).toMatchObject([expect.arrayContaining([next]), next]);
    expect(look).toBeUndefined();
  },
);

test("nothing is told of a fetched job with another text, nor of one whose entry can't be read", async () => {
  const fixture = setup();
  const [id, other] = [await newIdIn(fixture, "queued"), await newIdIn(fixture, "queued")];
  const [conflict, broken] = [await newIdIn(fixture, "queued"), fixture.newId()];
  await Promise.all([id, other].map((each) => fixture.addJob(each)));
  await fixture.addWaiting(conflict, "another");
  await fixture.addWaiting(broken);
  await redis.set(fixture.entryKey(broken), "not a hash");
  const ended = await Promise.all([fixture.finish(id, "deliver"), fixture.finish(other, "deliver")]);
  expect(ended).toMatchObject([
    { booked: "booked", finished: [expect.anything(), conflict], look: undefined },
    { booked: "booked", finished: [expect.anything(), broken], look: undefined },
  ]);
});

test("a publisher's job that another's entry stands for is told with that other's name", async () => {
  const fixture = setup();
  const [id, next] = [await newIdIn(fixture, "queued"), fixture.newId()];
  await fixture.accept(next);
  await redis.hset(fixture.entryKey(next), "p", publisherIdSchema.parse("theirs"));
  await fixture.addJob(id);
  await fixture.addWaiting(next);
  expect((await fixture.finish(id, "deliver")).look?.publisher).toBe("theirs");
});

test("a Redis that forgot the script gets it again", async () => {
  const fixture = setup();
  const [before, after] = [await newIdIn(fixture, "queued"), await newIdIn(fixture, "queued")];
  await fixture.addJob(before);
  expect(await fixture.finish(before, "deliver")).toMatchObject({ booked: "booked" });
  await fixture.addJob(after);
  await redis.script("FLUSH");
  expect(await fixture.finish(after, "deliver")).toMatchObject({ booked: "booked", finished: 0 });
});

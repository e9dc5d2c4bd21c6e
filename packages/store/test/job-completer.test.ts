/**
 * Completing jobs on a real Redis with BullMQ's real worker: final settlements are booked like others, before the queue
 * changes, and the entry of the next job is prefetched only if it matches the job.
 */
import { randomUUID } from "node:crypto";
import { type AdResponseId, publisherIdSchema } from "@adrelay/contract";
import { decideTransition, ENTRY_STATES, type EntryState } from "@adrelay/core";
import { eventually } from "@adrelay/testkit";
import { afterEach, expect, test } from "vitest";
import { type FetchedJob, QueueWorker } from "../src/bullmq/worker.ts";
import type { PrefetchedEntry } from "../src/delivery/attempt-start.ts";
import type { JobEnd } from "../src/delivery/job-completer.ts";
import { isFinal } from "../src/delivery/settlement.ts";
import { queueAlone } from "./queue-fixture.ts";
import {
  jobOf,
  newId,
  newIdIn,
  openTestRedis,
  openTestStore,
  publisher,
  type StoreFixture,
  settlementOf,
} from "./store-fixture.ts";

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  await Promise.all(stops.splice(0).map((stop) => stop()));
});

type FinalEvent = "deliver" | "refuse";

function setup() {
  const fixture = openTestStore(redis);
  const { parts, completer } = fixture;
  /** Puts a job on the queue without asking the ledger. */
  const addJob = async (id: AdResponseId, textHash = "hash") => {
    // The outbox task that bringing the entry into its state left. It has no job.
    await redis.del(parts.queue.payloadKey(id));
    await queueAlone(parts, jobOf(id), textHash);
  };
  const hasJob = async (id: AdResponseId) => (await redis.exists(parts.queue.payloadKey(id))) === 1;
  /** Runs all jobs, one at a time; each ends as `endOf` says. Resolves with what was prefetched of each. */
  const work = async (count: number, endOf: (id: AdResponseId) => FinalEvent | undefined) => {
    const prefetched = new Map<AdResponseId, PrefetchedEntry | undefined>();
    const errors: unknown[] = [];
    const worker = new QueueWorker({
      id: randomUUID(),
      redis,
      queuePrefix: parts.keys.queuePrefix,
      concurrency: 1,
      attemptTimeoutMs: 1000,
      run: async (fetched) => runOne(fetched, endOf, prefetched),
      complete: (job, finalAttempt, script) => completer.complete(job, finalAttempt, script),
      onError: (error) => errors.push(error),
    });
    stops.push(() => worker.stop());
    worker.start();
    await eventually(async () => {
      expect(prefetched.size).toBe(count);
      expect(await parts.queue.depths()).toMatchObject({ waiting: 0, active: 0 });
    });
    return { prefetched, errors };
  };
  const entryKey = (id: AdResponseId) => fixture.key(`e:${id.replaceAll("-", "")}`);
  return { ...fixture, addJob, hasJob, work, entryKey };
}

function runOne(
  { data, prefetched }: FetchedJob,
  endOf: (id: AdResponseId) => FinalEvent | undefined,
  seen: Map<AdResponseId, PrefetchedEntry | undefined>,
): JobEnd {
  const { adResponseId: id } = data as ReturnType<typeof jobOf>;
  seen.set(id, prefetched);
  const event = endOf(id);
  const settlement = settlementOf(id, event ?? "deliver");
  if (event === undefined || !isFinal(settlement)) {
    return { kind: "completed", finalAttempt: undefined };
  }
  const entry = { queuedAtMs: 0, nextAttemptAtMs: undefined, attempts: 0, failedAttempts: 0 };
  const due = { job: jobOf(id), entry, nowMs: 0 };
  const trace = { own: undefined, recorded: undefined };
  const made = { kind: "made", settlement, isProbe: false, trace } as const;
  return { kind: "completed", finalAttempt: { due, made, settlement } };
}

/** The ledger's content, without ids and times. */
async function timeless({ find, snapshot }: StoreFixture, id: AdResponseId): Promise<string> {
  const { totals, states, ...counts } = await snapshot();
  const text = JSON.stringify([await find(id), [...totals], states, counts]);
  return text.replaceAll(id, "ID").replaceAll(/\d{13}/g, "T");
}

test.each(
  ENTRY_STATES.flatMap((state) => (["deliver", "refuse"] as const).map((event) => [state, event] as const)),
)("in state %s completing a job with %s books the same as a settlement", async (state, event) => {
  const [completed, settled] = [setup(), setup()];
  const [id, other] = [await newIdIn(completed, state), await newIdIn(settled, state)];
  await completed.addJob(id);
  await completed.work(1, () => event);
  const booked = await settled.settle(other, event);
  expect(completed.settled).toMatchObject([{ booked }]);
  expect(await timeless(completed, id)).toBe(await timeless(settled, other));
  const transition = decideTransition(state, event);
  const after = (await completed.find(id))?.state ?? "absent";
  expect(after).toBe(transition.kind === "moved" ? transition.to : state);
  expect(await completed.hasJob(id)).toBe(false);
});

test("a job that ends without an attempt is completed, and nothing is booked", async () => {
  const fixture = setup();
  const id = await newIdIn(fixture, "delivered");
  await fixture.addJob(id);
  const before = await timeless(fixture, id);
  await fixture.work(1, () => undefined);
  expect(fixture.settled).toEqual([]);
  expect(await timeless(fixture, id)).toBe(before);
  expect(await fixture.hasJob(id)).toBe(false);
});

test("a job whose outcome can't be booked stays, and others are completed", async () => {
  const fixture = setup();
  const ids = [newId(), newId(), newId()];
  for (const id of ids) {
    await fixture.begin(id);
    await fixture.addJob(id);
  }
  const [first, broken, last] = ids.map((id) => fixture.entryKey(id));
  await redis.del(broken ?? "");
  await redis.set(broken ?? "", "not a hash");
  await fixture.work(3, () => "deliver");
  expect(await Promise.all(ids.map((id) => fixture.hasJob(id)))).toEqual([false, true, false]);
  expect(await Promise.all([first, last].map((key) => redis.hget(key ?? "", "s")))).toEqual([
    "delivered",
    "delivered",
  ]);
});

test("an outcome is booked although the lock of its job is lost", async () => {
  const fixture = setup();
  const id = await newIdIn(fixture, "queued");
  await fixture.addJob(id);
  const { parts, completer } = fixture;
  const errors: string[] = [];
  const worker = new QueueWorker({
    id: randomUUID(),
    redis,
    queuePrefix: parts.keys.queuePrefix,
    concurrency: 1,
    attemptTimeoutMs: 1000,
    run: async (fetched) => {
      await redis.del(`${parts.queue.payloadKey(id)}:lock`);
      return runOne(fetched, () => "deliver", new Map());
    },
    complete: (job, finalAttempt, script) => completer.complete(job, finalAttempt, script),
    onError: (error) => errors.push(String(error)),
  });
  stops.push(() => worker.stop());
  worker.start();
  await eventually(async () => expect(await fixture.find(id)).toMatchObject({ state: "delivered" }));
  await eventually(() => expect(errors.join()).toContain("Missing lock for job"));
  expect(await fixture.hasJob(id)).toBe(true);
  expect(fixture.settled).toMatchObject([{ booked: "booked" }]);
});

/** Two jobs. The step that completes the first one may prefetch the entry of the second one. */
async function prefetchOf(fixture: ReturnType<typeof setup>, next: AdResponseId, textHash?: string) {
  const id = await newIdIn(fixture, "queued");
  await fixture.addJob(id);
  await fixture.addJob(next, textHash);
  const { prefetched } = await fixture.work(2, () => "deliver");
  expect(prefetched.get(id)).toBeUndefined();
  return prefetched.get(next);
}

test("a prefetched entry equals what the ledger returns at the attempt's start", async () => {
  const fixture = setup();
  const next = await newIdIn(fixture, "queued");
  await fixture.settle(next, "retry");
  const begun = await fixture.begin(next);
  const prefetched = await prefetchOf(fixture, next);
  expect(prefetched?.publisher).toBe(publisher);
  expect(JSON.stringify(prefetched?.begun).replace(/\d{13}/, "NOW")).toBe(
    JSON.stringify(begun).replace(/\d{13}/, "NOW"),
  );
});

test.each(ENTRY_STATES.filter((state): state is EntryState => state !== "queued"))(
  "no entry is prefetched for a job in state %s",
  async (state) => {
    const fixture = setup();
    expect(await prefetchOf(fixture, await newIdIn(fixture, state))).toBeUndefined();
  },
);

test("no entry is prefetched for a job with another text, nor one that can't be read", async () => {
  const fixture = setup();
  expect(await prefetchOf(fixture, await newIdIn(fixture, "queued"), "another")).toBeUndefined();
  const broken = newId();
  await redis.set(fixture.entryKey(broken), "not a hash");
  const other = setup();
  await redis.set(other.entryKey(broken), "not a hash");
  expect(await prefetchOf(other, broken)).toBeUndefined();
});

test("a prefetched entry of another publisher has that publisher's name", async () => {
  const fixture = setup();
  const next = await newIdIn(fixture, "queued");
  await redis.hset(fixture.entryKey(next), "p", publisherIdSchema.parse("theirs"));
  expect((await prefetchOf(fixture, next))?.publisher).toBe("theirs");
});

test("a script that Redis has forgotten is sent again", async () => {
  const fixture = setup();
  const [before, after] = [await newIdIn(fixture, "queued"), await newIdIn(fixture, "queued")];
  await fixture.addJob(before);
  await fixture.addJob(after);
  await fixture.work(2, () => {
    void redis.script("FLUSH");
    return "deliver";
  });
  expect(await fixture.find(before)).toMatchObject({ state: "delivered" });
  expect(await fixture.find(after)).toMatchObject({ state: "delivered" });
});

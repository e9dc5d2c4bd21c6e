/** Guards against waits that last as long as a step of Redis' clock, and against losses and repeats by such a step. */
import type { AdResponseId } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { Registry } from "prom-client";
import { afterEach, expect, test } from "vitest";
import { decideAttempt } from "../src/delivery/attempt-start.ts";
import { COMPLETED, NO_JOBS, newJob, openTestQueue } from "./queue-fixture.ts";
import { setRedisClockBack } from "./redis-clock.ts";
import { EVERYTHING, newId, openTestRedis, publisher } from "./store-fixture.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
/** Long enough for a busy machine to look before it is over. */
const WAITS = { delayMs: 10_000 };
const BACK = [HOUR_MS / 2, DAY_MS, 400 * DAY_MS] as const;

const { redis } = await openTestRedis({ maxRetriesPerRequest: null });
const stops: (() => Promise<void>)[] = [];

afterEach(async () => {
  for (const stop of stops.splice(0).reverse()) {
    await stop();
  }
});

function setup() {
  const fixture = openTestQueue(redis, (stop) => stops.push(stop));
  const { acknowledgments, maintenance, begin, settle, work, queue, partition } = fixture;
  const queued = async () => {
    const id = newId();
    await begin(id);
    return id;
  };
  const dead = async () => {
    const id = await queued();
    await settle(id, "die");
    return id;
  };
  /** One whose first attempt failed a moment ago, and whose job the queue delays for `delayMs`. */
  const retried = async (delayMs: number) => {
    const job = newJob();
    await acknowledgments.accept({ job, textHash: "hash" });
    const worker = work(async () => {
      await settle(job.adResponseId, "retry");
      return { kind: "delayed", delayMs };
    });
    await eventually(async () => expect(await queue.depths()).toMatchObject({ active: 0, delayed: 1 }));
    await worker.stop();
    return job.adResponseId;
  };
  return {
    ...fixture,
    queued,
    dead,
    retried,
    sweep: () => maintenance.sweep(30 * DAY_MS),
    setBack: (stepMs: number) => setRedisClockBack(redis, partition, stepMs),
    many: (count: number) => Promise.all(Array.from({ length: count }, dead)),
  };
}
type Fixture = ReturnType<typeof setup>;

async function nowMs(): Promise<number> {
  const [seconds] = await redis.time();
  return Number(seconds) * 1000;
}

const countIn = async ({ snapshot }: Fixture, state: string) =>
  (await snapshot()).states.find(({ label }) => label === state)?.value ?? 0;

test.each(BACK)("a leased outbox task is done after a step back of %d ms", async (stepMs) => {
  const fixture = setup();
  const { many, sweepExpired, parts, sweep, setBack, snapshot } = fixture;
  await many(5);
  await sweepExpired(100, 0);
  // Their worker dies.
  expect(await parts.outbox.leaseDue(10, 1000)).toHaveLength(5);
  await setBack(stepMs);
  await sweep();
  expect((await snapshot()).outboxTasks).toBe(0);
});

test("a task whose lease is right stays with its worker", async () => {
  const { dead, sweepExpired, parts, sweep, snapshot } = setup();
  await dead();
  await sweepExpired(100, 0);
  await parts.outbox.leaseDue(10, 2900);
  await sweep();
  expect((await snapshot()).outboxTasks).toBe(1);
});

/** Runs steps of a bulk replay until it has completed. Each letter that is put back dies again at once. */
async function replayToEnd({ parts: { replays }, settle }: Fixture, replay: string): Promise<AdResponseId[]> {
  const moved: AdResponseId[] = [];
  await eventually(async () => {
    const batch = await replays.runBatch(replay, 5, 0);
    for (const { id } of batch.moved) {
      moved.push(id);
      await settle(id, "die");
    }
    expect(batch.state).toBe("completed");
  }, 20_000);
  return moved;
}

test.each([...BACK, -DAY_MS])(
  "a bulk replay puts each letter back once after a step back of %d ms",
  async (stepMs) => {
    const fixture = setup();
    const ids = await fixture.many(25);
    const replay = await fixture.replays.start({ filter: EVERYTHING, ratePerSecond: 50, by: "alice" });
    const moved: AdResponseId[] = [];
    await eventually(async () => {
      for (const { id } of (await fixture.parts.replays.runBatch(replay, 5, 0)).moved) {
        moved.push(id);
        await fixture.settle(id, "die");
      }
      expect(moved.length).toBeGreaterThanOrEqual(5);
    });
    await fixture.setBack(stepMs);
    const leftAtMs = performance.now();
    moved.push(...(await replayToEnd(fixture, replay)));
    expect(moved.toSorted()).toEqual(ids.toSorted());
    // No faster than its rate, but for the tokens that it had, which are one second's at most.
    const most = 50 + ((performance.now() - leftAtMs) / 1000) * 50;
    expect(moved.length).toBeLessThanOrEqual(most);
    expect(await fixture.replays.find(replay)).toMatchObject({ state: "completed", replayed: 25 });
  },
);

test("a bulk replay covers letters that died before the clock was set back", async () => {
  const fixture = setup();
  const ids = await fixture.many(3);
  await fixture.setBack(DAY_MS);
  ids.push(...(await fixture.many(2)));
  expect((await fixture.replays.count(EVERYTHING)).matched).toBe(5);
  const order = { filter: EVERYTHING, ratePerSecond: 1000, by: "alice" };
  expect((await replayToEnd(fixture, await fixture.replays.start(order))).toSorted()).toEqual(ids.toSorted());
  expect((await replayToEnd(fixture, await fixture.replays.start(order))).toSorted()).toEqual(ids.toSorted());
});

test("a bulk discard that was counted after a step back spares what died since", async () => {
  const fixture = setup();
  await fixture.many(2);
  await fixture.setBack(DAY_MS);
  const { discards } = fixture.parts;
  const { matched, beforeMs: untilMs } = await discards.count(EVERYTHING);
  const later = await fixture.dead();
  const id = await discards.start({ filter: { ...EVERYTHING, untilMs }, by: "alice", why: "old" });
  expect((await discards.runBatch(id, 100, 0)).moved).toHaveLength(matched);
  expect(await fixture.find(later)).toMatchObject({ state: "dead" });
});

test.each(BACK)("an attempt whose job comes up is due after a step back of %d ms", async (stepMs) => {
  const { queued, settle, begin, setBack } = setup();
  const id = await queued();
  await settle(id, "retry", WAITS);
  expect(decideAttempt(await begin(id))).toMatchObject({ kind: "early" });
  await setBack(stepMs);
  expect(decideAttempt(await begin(id))).toMatchObject({ kind: "due" });
  // The next wait is kept again.
  await settle(id, "retry", WAITS);
  expect(decideAttempt(await begin(id))).toMatchObject({ kind: "early", delayMs: expect.any(Number) });
});

test.each(BACK)("a delayed job comes back if all clocks are set back by %d ms", async (stepMs) => {
  const { retried, setBack, sweep, maintenance, queue, key } = setup();
  // Its worker's clock was ahead as well, so the queue delays the job for the step.
  const id = await retried(stepMs);
  await setBack(stepMs);
  await sweep();
  await redis.zincrby(key("queued:due"), -10_000, id.replaceAll("-", ""));
  await maintenance.promoteOverdue();
  expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: 1 });
});

test("the comparison with the queue finds a stale wait among longer ones that are right", async () => {
  const { retried, setBack, sweep, maintenance, queue, key, queued, settle } = setup();
  const id = await retried(HOUR_MS);
  await setBack(HOUR_MS / 2);
  // A wait of half a day hides the stale one from the sweep.
  const other = await queued();
  await settle(other, "retry");
  const member = other.replaceAll("-", "");
  await redis.zincrby(key("queued:due"), DAY_MS / 2, member);
  await redis.hincrby(key(`e:${member}`), "w", DAY_MS / 2);
  await sweep();
  await redis.zincrby(key("queued"), -HOUR_MS, id.replaceAll("-", ""));
  await maintenance.reconcile();
  expect(await queue.depths()).toEqual({ ...NO_JOBS, waiting: 1 });
});

test("a queued acknowledgment gets its whole age, and no more, after a step back", async () => {
  const { queued, setBack, sweep, begin, snapshot, key } = setup();
  const id = await queued();
  await setBack(DAY_MS);
  await sweep();
  const begun = await begin(id);
  const queuedAtMs = begun.kind === "queued" ? (begun.entry.queuedAtMs ?? 0) : 0;
  expect(queuedAtMs).toBeLessThan((await nowMs()) + 2000);
  expect(queuedAtMs).toBeGreaterThan((await nowMs()) - 10_000);
  expect(Number(await redis.zscore(key("queued"), id.replaceAll("-", "")))).toBe(queuedAtMs);
  expect((await snapshot()).oldestQueuedAgeMs).toBeLessThan(10_000);
});

test.each(BACK)("an ad response is missed at its deadline after a step back of %d ms", async (stepMs) => {
  const { injections, setBack, sweep, find } = setup();
  const [brief, long] = [newId(), newId()];
  await injections.record({ id: brief, publisher, outcome: "ok", deadlineMs: 100 });
  await setBack(stepMs);
  await injections.record({ id: long, publisher, outcome: "ok", deadlineMs: 60_000 });
  await eventually(async () => {
    await sweep();
    expect(await find(brief)).toMatchObject({ state: "missed" });
  });
  expect(await find(long)).toMatchObject({ state: "awaiting" });
});

test("locks and searches for stalled jobs keep their bounds after a step back", async () => {
  const { acknowledgments, setBack, sweep, queue, bare } = setup();
  const job = newJob();
  await acknowledgments.accept({ job, textHash: "hash" });
  const id = job.adResponseId;
  // As a worker that was killed leaves it.
  await redis.lmove(bare.toKey("wait"), bare.toKey("active"), "LEFT", "RIGHT");
  await redis.set(queue.lockKey(id), "token", "PX", 20_000);
  await redis.set(bare.toKey("stalled-check"), "1", "PX", 5000);
  expect(await queue.shortenLocks()).toBe(0);
  await setBack(DAY_MS);
  await sweep();
  expect(await redis.pttl(queue.lockKey(id))).toBeLessThanOrEqual(130_000);
  expect(await redis.pttl(bare.toKey("stalled-check"))).toBeLessThanOrEqual(5000);
  expect(await redis.exists(queue.lockKey(id), bare.toKey("stalled-check"))).toBe(2);
});

test("a correction of the clock by half a second shortens no wait", async () => {
  const { queued, settle, begin, setBack, sweep } = setup();
  const id = await queued();
  await settle(id, "retry", WAITS);
  await setBack(500);
  await sweep();
  expect(decideAttempt(await begin(id))).toMatchObject({ kind: "early" });
});

test("nothing is mended while the clock is right", async () => {
  const { injections, retried, queued, key, sweep } = setup();
  await injections.record({ id: newId(), publisher, outcome: "ok", deadlineMs: DAY_MS });
  await Promise.all([retried(HOUR_MS), queued()]);
  const indexes = ["awaiting", "queued", "queued:due"];
  const load = () => Promise.all(indexes.map((name) => redis.zrange(key(name), "0", "-1", "WITHSCORES")));
  const before = await load();
  await sweep();
  expect(await load()).toEqual(before);
});

test("a step forward by a day loses nothing and doubles nothing", async () => {
  const fixture = setup();
  const { retried, setBack, sweep, maintenance, find, work, settle, injections, many, queue } = fixture;
  const id = await retried(HOUR_MS);
  await many(3);
  const awaiting = newId();
  await injections.record({ id: awaiting, publisher, outcome: "ok", deadlineMs: 60_000 });
  await setBack(-DAY_MS);
  await sweep();
  await maintenance.promoteOverdue();
  const runs: AdResponseId[] = [];
  work(async (job) => {
    runs.push(job.adResponseId);
    await settle(job.adResponseId, "deliver");
    return COMPLETED;
  });
  await eventually(async () => expect(await find(id)).toMatchObject({ state: "delivered", attempts: 2 }));
  await eventually(async () => expect((await queue.depths()).delayed).toBe(0));
  expect(runs).toEqual([id]);
  expect(await find(awaiting)).toMatchObject({ state: "missed" });
  expect([await countIn(fixture, "delivered"), await countIn(fixture, "dead")]).toEqual([1, 3]);
});

const IDENTITY = { role: "worker", host: "h", pid: 1, version: "1.0.0", startedAtMs: 1000 } as const;

test("a process that is gone is not listed, and a live one is, after a step back", async () => {
  const { heartbeat, setBack, key } = setup();
  const start = (pid: number) => heartbeat({ identity: { ...IDENTITY, pid }, registry: new Registry() });
  const [gone, alive] = [start(1), start(2)];
  await gone.beat();
  await alive.beat();
  await setBack(DAY_MS);
  await alive.beat();
  expect((await alive.loadProcesses()).map(({ pid }) => pid)).toEqual([2]);
  for (let beat = 0; beat < 10; beat += 1) {
    await alive.beat();
  }
  expect(await redis.hlen(key("processes"))).toBe(1);
});

test("a loss of data is shown for its hour, and a new one is noticed, after a step back", async () => {
  const { heartbeat, setBack, key } = setup();
  const start = () => heartbeat({ identity: IDENTITY, registry: new Registry() });
  const process = start();
  await redis.set(key("data-loss"), `${await nowMs()} the first loss`, "PX", DAY_MS);
  await process.beat();
  await setBack(DAY_MS);
  await process.beat();
  const first = await process.loadLoss();
  expect(first?.detail).toBe("the first loss");
  expect(first?.atMs).toBeLessThan((await nowMs()) + 2000);
  expect(process.warnings()["redis_data"]).toContain("the first loss");
  expect(await redis.pttl(key("data-loss"))).toBeLessThanOrEqual(DAY_MS);
  // The next one comes right after another step.
  await setBack(DAY_MS);
  await redis.del(key("heartbeat"), key("processes"));
  await process.beat();
  expect((await start().loadLoss())?.detail).toContain("Redis was emptied");
});

import { publisherIdSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { ConcurrencyLimiter, countJobs, type FreeSlot } from "./concurrency-limiter.ts";

const ALPHA = publisherIdSchema.parse("alpha");
const BETA = publisherIdSchema.parse("beta");

function limiterOf(limit: number, now?: () => number, publishers = 1) {
  return new ConcurrencyLimiter({ limit, publishers, ...(now === undefined ? {} : { now }) });
}

test("slots are limited, and a freed one goes to the longest waiting attempt", async () => {
  const limiter = limiterOf(2);
  const [first, second] = [await limiter.acquire(ALPHA), await limiter.acquire(ALPHA)];
  expect(limiter.room.of(ALPHA)).toBe(0);
  const order: string[] = [];
  const third = limiter.acquire(ALPHA).then((free) => {
    order.push("third");
    return free;
  });
  const fourth = limiter.acquire(ALPHA).then(() => order.push("fourth"));
  first?.();
  await third;
  expect(order).toEqual(["third"]);
  second?.();
  await fourth;
  expect(order).toEqual(["third", "fourth"]);
});

test("freeing a slot twice frees it once", async () => {
  const limiter = limiterOf(1, () => 0);
  const free = await limiter.acquire(ALPHA);
  free?.();
  free?.();
  expect(limiter.room.of(ALPHA)).toBe(1);
});

test("after a wait in vain no attempt waits before a slot is freed", async () => {
  const limiter = limiterOf(1);
  const free = await limiter.acquire(ALPHA);
  expect(await limiter.acquire(ALPHA)).toBeUndefined();
  // Answered in this turn of the event loop: no timer was set.
  expect(await Promise.race([limiter.acquire(ALPHA), Promise.resolve("waits")])).toBeUndefined();
  free?.();
  expect(await limiter.acquire(ALPHA)).toBeDefined();
});

test("no attempt waits for slots that a slow provider holds for longer than the wait", async () => {
  let nowMs = 0;
  const limiter = limiterOf(2, () => nowMs);
  await limiter.acquire(ALPHA);
  for (let held = 0; held < 3; held += 1) {
    const free = await limiter.acquire(ALPHA);
    nowMs += 1000;
    free?.();
  }
  await limiter.acquire(ALPHA);
  // Two slots, each held for about half a second by now: the next one is free in time, the one after it isn't.
  const first = limiter.acquire(ALPHA);
  expect(await Promise.race([limiter.acquire(ALPHA), Promise.resolve("waits")])).toBeUndefined();
  expect(await Promise.race([first, Promise.resolve("waits")])).toBe("waits");
});

test("there is room for what a quick provider's slots will soon serve, within a bound", async () => {
  let nowMs = 0;
  const limiter = limiterOf(2, () => nowMs);
  const holdFor = async (heldMs: number) => {
    const free = await limiter.acquire(ALPHA);
    nowMs += heldMs;
    free?.();
  };
  expect(limiter.room.of(ALPHA)).toBe(2);
  // A slot is held for 40 ms on average from now on, so each serves two and a half attempts in 100 ms.
  await holdFor(200);
  expect(limiter.room.of(ALPHA)).toBe(5);
  await limiter.acquire(ALPHA);
  expect(limiter.room.of(ALPHA)).toBe(4);
  for (let quick = 0; quick < 20; quick += 1) {
    await holdFor(1);
  }
  expect(limiter.room.of(ALPHA)).toBe(2 * 5 - 1);
});

test("one publisher's slow attempts leave slots for another publisher of the account", async () => {
  const limiter = limiterOf(10, undefined, 2);
  const ofAlpha = await Promise.all(Array.from({ length: 10 }, () => limiter.acquire(ALPHA)));
  expect(ofAlpha.filter((free) => free !== undefined)).toHaveLength(5);
  expect(limiter.room.of(ALPHA)).toBe(0);
  expect(limiter.room.of(BETA)).toBe(5);
  const ofBeta = await Promise.all(Array.from({ length: 5 }, () => limiter.acquire(BETA)));
  expect(ofBeta.every((free) => free !== undefined)).toBe(true);
});

test("the fewest slots of a failing account still leave one for another publisher", async () => {
  let nowMs = 0;
  const limiter = limiterOf(10, () => nowMs, 2);
  for (let failed = 0; failed < 30; failed += 1) {
    const free = await limiter.acquire(ALPHA);
    nowMs += 1;
    free?.("overloaded");
  }
  expect(limiter.slots).toBe(2);
  expect(await limiter.acquire(ALPHA)).toBeDefined();
  expect(await limiter.acquire(BETA)).toBeDefined();
});

test("slow attempts of several publishers that have all the slots keep no quick publisher waiting", async () => {
  let nowMs = 0;
  const limiter = limiterOf(10, () => nowMs, 3);
  const slow = [ALPHA, BETA];
  for (let failed = 0; failed < 30; failed += 1) {
    const frees = await Promise.all(slow.map((publisher) => limiter.acquire(publisher)));
    nowMs += 10_000;
    for (const free of frees) {
      free?.("overloaded");
    }
  }
  expect(limiter.slots).toBe(2);
  for (const publisher of slow) {
    expect(await limiter.acquire(publisher)).toBeDefined();
    expect(await limiter.acquire(publisher)).toBeUndefined();
  }
  expect(await limiter.acquire(publisherIdSchema.parse("gamma"))).toBeDefined();
});

test("a single publisher has all slots", async () => {
  const limiter = limiterOf(10);
  const frees = await Promise.all(Array.from({ length: 10 }, () => limiter.acquire(ALPHA)));
  expect(frees.every((free) => free !== undefined)).toBe(true);
});

test("attempts that fail under load make fewer slots, and successes make more again", async () => {
  let nowMs = 0;
  const limiter = limiterOf(100, () => nowMs);
  const attempt = async (result: Parameters<FreeSlot>[0]) => {
    const free = await limiter.acquire(ALPHA);
    nowMs += 1;
    free?.(result);
  };
  for (let failed = 0; failed < 30; failed += 1) {
    await attempt("overloaded");
  }
  expect(limiter.slots).toBe(10);
  for (let succeeded = 0; succeeded < 200; succeeded += 1) {
    await attempt("succeeded");
  }
  expect(limiter.slots).toBe(100);
});

test("attempts that ran at the same time and failed count once", async () => {
  let nowMs = 0;
  const limiter = limiterOf(10, () => nowMs);
  const frees = await Promise.all(Array.from({ length: 10 }, () => limiter.acquire(ALPHA)));
  nowMs += 1;
  for (const free of frees) {
    free?.("overloaded");
  }
  expect(limiter.slots).toBe(8);
});

const accountsOf = (count: number, publishers = [ALPHA]) =>
  Array.from({ length: count }, () => ({ publishers }));

test("each account has jobs for all its attempts, within the bound", () => {
  expect(countJobs(50, accountsOf(1))).toBe(50);
  expect(countJobs(50, accountsOf(3))).toBe(150);
  expect(countJobs(50, accountsOf(30))).toBe(1000);
});

test("a worker with a shared account has more jobs than that account has slots", () => {
  expect(countJobs(50, accountsOf(1, [ALPHA, BETA]))).toBe(100);
  expect(countJobs(10_000, accountsOf(1, [ALPHA, BETA]))).toBe(20_000);
});

test("one account never holds all jobs of a worker", () => {
  for (const attemptsMax of [1, 50, 999, 1000, 10_000]) {
    expect(countJobs(attemptsMax, accountsOf(2))).toBe(2 * attemptsMax);
  }
  expect(countJobs(10_000, accountsOf(1))).toBe(10_000);
});

import { expect, test } from "vitest";
import { ConcurrencyLimiter, countJobs } from "./concurrency-limiter.ts";

test("slots are limited, and a freed one goes to the longest waiting attempt", async () => {
  const limiter = new ConcurrencyLimiter(2);
  const [first, second] = [await limiter.acquire(), await limiter.acquire()];
  expect(limiter.room).toBe(0);
  const order: string[] = [];
  const third = limiter.acquire().then((free) => {
    order.push("third");
    return free;
  });
  const fourth = limiter.acquire().then(() => order.push("fourth"));
  first?.();
  await third;
  expect(order).toEqual(["third"]);
  second?.();
  await fourth;
  expect(order).toEqual(["third", "fourth"]);
});

test("freeing a slot twice frees it once", async () => {
  const limiter = new ConcurrencyLimiter(1, () => 0);
  const free = await limiter.acquire();
  free?.();
  free?.();
  expect(limiter.room).toBe(1);
});

test("after a wait in vain no attempt waits before a slot is freed", async () => {
  const limiter = new ConcurrencyLimiter(1);
  const free = await limiter.acquire();
  expect(await limiter.acquire()).toBeUndefined();
  // Answered in this turn of the event loop: no timer was set.
  expect(await Promise.race([limiter.acquire(), Promise.resolve("waits")])).toBeUndefined();
  free?.();
  expect(await limiter.acquire()).toBeDefined();
});

test("no attempt waits for slots that a slow provider holds for longer than the wait", async () => {
  let nowMs = 0;
  const limiter = new ConcurrencyLimiter(2, () => nowMs);
  await limiter.acquire();
  for (let held = 0; held < 3; held += 1) {
    const free = await limiter.acquire();
    nowMs += 1000;
    free?.();
  }
  await limiter.acquire();
  // Two slots, each held for about half a second by now: the next one is free in time, the one after it isn't.
  const first = limiter.acquire();
  expect(await Promise.race([limiter.acquire(), Promise.resolve("waits")])).toBeUndefined();
  expect(await Promise.race([first, Promise.resolve("waits")])).toBe("waits");
});

test("there is room for what a quick provider's slots will soon serve, within a bound", async () => {
  let nowMs = 0;
  const limiter = new ConcurrencyLimiter(2, () => nowMs);
  const holdFor = async (heldMs: number) => {
    const free = await limiter.acquire();
    nowMs += heldMs;
    free?.();
  };
  expect(limiter.room).toBe(2);
  // A slot is held for 40 ms on average from now on, so each serves two and a half attempts in 100 ms.
  await holdFor(200);
  expect(limiter.room).toBe(5);
  await limiter.acquire();
  expect(limiter.room).toBe(4);
  for (let quick = 0; quick < 20; quick += 1) {
    await holdFor(1);
  }
  expect(limiter.room).toBe(2 * 5 - 1);
});

test("each account has jobs for all its attempts, within the bound", () => {
  expect(countJobs(50, 1)).toBe(50);
  expect(countJobs(50, 3)).toBe(150);
  expect(countJobs(50, 30)).toBe(1000);
});

test("one account never holds all jobs of a worker", () => {
  for (const attemptsMax of [1, 50, 999, 1000, 10_000]) {
    expect(countJobs(attemptsMax, 2)).toBe(2 * attemptsMax);
  }
  expect(countJobs(10_000, 1)).toBe(10_000);
});

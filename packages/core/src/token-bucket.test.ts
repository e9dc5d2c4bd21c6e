import fc from "fast-check";
import { expect, test } from "vitest";
import { TokenBucket } from "./token-bucket.ts";

const LIMITS = { ratePerSecond: 10, burst: 3 };
const UNLIMITED = Number.POSITIVE_INFINITY;

test("a burst is let through at once and then one request each interval", () => {
  const bucket = new TokenBucket();
  const waits = [0, 0, 0, 0, 50, 100, 100].map((nowMs) => bucket.take(LIMITS, nowMs));
  expect(waits).toEqual([0, 0, 0, 100, 50, 0, 100]);
});

test("a long pause gives back no more than the burst", () => {
  const bucket = new TokenBucket();
  const waits = [0, 1e9, 1e9, 1e9, 1e9].map((nowMs) => bucket.take(LIMITS, nowMs));
  expect(waits).toEqual([0, 0, 0, 0, 100]);
});

test("without a rate or a burst nothing is refused", () => {
  for (const limits of [
    { ratePerSecond: UNLIMITED, burst: 1 },
    { ratePerSecond: 1, burst: UNLIMITED },
    { ratePerSecond: UNLIMITED, burst: UNLIMITED },
  ]) {
    const bucket = new TokenBucket();
    expect([1, 2, 2, 2].map((nowMs) => bucket.take(limits, nowMs))).toEqual([0, 0, 0, 0]);
  }
});

test("what is taken beyond the tokens is paid back before anything else", () => {
  const bucket = new TokenBucket();
  const takes = [
    [0, 2],
    [0, 10],
    [0, 1],
    [900, 1],
    [1000, 1],
  ] as const;
  // 10 of the last token leave a debt of 9, which takes 0.9 seconds.
  expect(takes.map(([nowMs, wanted]) => bucket.take(LIMITS, nowMs, wanted))).toEqual([0, 0, 1000, 100, 0]);
});

test("what is spent already is taken also from an empty bucket, and paid back before anything else", () => {
  const bucket = new TokenBucket();
  expect([bucket.owe(LIMITS, 0, 4), bucket.take(LIMITS, 0)]).toEqual([0, 200]);
  expect([bucket.owe(LIMITS, 100, 10), bucket.take(LIMITS, 100)]).toEqual([1100, 1100]);
  expect([bucket.take(LIMITS, 1199), bucket.take(LIMITS, 1200)]).toEqual([1, 0]);
});

test("within any time no more get through than the burst and the rate allow", () => {
  fc.assert(
    fc.property(fc.array(fc.nat(100), { maxLength: 300 }), (pausesMs) => {
      const bucket = new TokenBucket();
      let nowMs = 0;
      let passed = 0;
      for (const pauseMs of pausesMs) {
        nowMs += pauseMs;
        passed += bucket.take(LIMITS, nowMs) === 0 ? 1 : 0;
      }
      expect(passed).toBeLessThanOrEqual(LIMITS.burst + (nowMs * LIMITS.ratePerSecond) / 1000 + 1e-6);
    }),
  );
});

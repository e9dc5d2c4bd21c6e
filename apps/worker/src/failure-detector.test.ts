import { expect, test } from "vitest";
import { FailureDetector } from "./circuit-breakers.ts";

const healthy = { kind: "healthy" } as const;
const failing = { kind: "failing", holdMs: 0 } as const;
const refusing = { kind: "refusing", isCertain: false } as const;

test("five failures with no call before them open the breaker, four don't", () => {
  const detector = new FailureDetector();
  const seen = [1, 2, 3, 4, 5].map(() => detector.observe(failing));
  expect(seen).toEqual([undefined, undefined, undefined, undefined, { reason: "outage", holdMs: 0 }]);
});

test("a provider that fails half of its calls is still called", () => {
  const detector = new FailureDetector();
  const seen = Array.from({ length: 200 }, (_, at) => detector.observe(at % 2 === 0 ? healthy : failing));
  expect(seen.every((trip) => trip === undefined)).toBe(true);
});

test("a provider that fails after a long healthy time opens the breaker within twenty calls", () => {
  const detector = new FailureDetector();
  for (let call = 0; call < 1000; call += 1) {
    detector.observe(healthy);
  }
  const seen = Array.from({ length: 20 }, () => detector.observe(failing));
  expect(seen.some((trip) => trip?.reason === "outage")).toBe(true);
});

test("three refusals in a row open the breaker, but not with a success between them", () => {
  const detector = new FailureDetector();
  const seen = [refusing, refusing, healthy, refusing, refusing, refusing].map((one) =>
    detector.observe(one),
  );
  expect(seen.slice(0, 5)).toEqual([undefined, undefined, undefined, undefined, undefined]);
  expect(seen[5]).toEqual({ reason: "auth", holdMs: 0 });
});

test("one certain refusal or one throttled call opens the breaker", () => {
  expect(new FailureDetector().observe({ kind: "refusing", isCertain: true })).toEqual({
    reason: "auth",
    holdMs: 0,
  });
  expect(new FailureDetector().observe({ kind: "throttled", holdMs: 9 })).toEqual({
    reason: "throttled",
    holdMs: 9,
  });
});

test("failures before a reset don't count", () => {
  const detector = new FailureDetector();
  for (let call = 0; call < 4; call += 1) {
    detector.observe(failing);
  }
  detector.reset();
  expect(detector.observe(failing)).toBeUndefined();
});

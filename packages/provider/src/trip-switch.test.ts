import { expect, test } from "vitest";
import { TripSwitch } from "./trip-switch.ts";

const healthy = { kind: "healthy" } as const;
const failing = { kind: "failing", holdMs: 0 } as const;
const refusing = { kind: "refusing", isCertain: false } as const;

test("five failures with nothing before them trip, four don't", () => {
  const tripSwitch = new TripSwitch();
  const seen = [1, 2, 3, 4, 5].map(() => tripSwitch.observe(failing));
  expect(seen).toEqual([undefined, undefined, undefined, undefined, { reason: "outage", holdMs: 0 }]);
});

test("a provider that fails half of its calls is called on", () => {
  const tripSwitch = new TripSwitch();
  const seen = Array.from({ length: 200 }, (_, at) => tripSwitch.observe(at % 2 === 0 ? healthy : failing));
  expect(seen.every((trip) => trip === undefined)).toBe(true);
});

test("a provider that begins to fail after long health trips within twenty calls", () => {
  const tripSwitch = new TripSwitch();
  for (let call = 0; call < 1000; call += 1) {
    tripSwitch.observe(healthy);
  }
  const seen = Array.from({ length: 20 }, () => tripSwitch.observe(failing));
  expect(seen.some((trip) => trip?.reason === "outage")).toBe(true);
});

test("three refusals in a row trip, not with a success between", () => {
  const tripSwitch = new TripSwitch();
  const seen = [refusing, refusing, healthy, refusing, refusing, refusing].map((one) =>
    tripSwitch.observe(one),
  );
  expect(seen.slice(0, 5)).toEqual([undefined, undefined, undefined, undefined, undefined]);
  expect(seen[5]).toEqual({ reason: "auth", holdMs: 0 });
});

test("a certain refusal and a throttle trip at once", () => {
  expect(new TripSwitch().observe({ kind: "refusing", isCertain: true })).toEqual({
    reason: "auth",
    holdMs: 0,
  });
  expect(new TripSwitch().observe({ kind: "throttled", holdMs: 9 })).toEqual({
    reason: "throttled",
    holdMs: 9,
  });
});

test("a reset forgets what was seen", () => {
  const tripSwitch = new TripSwitch();
  for (let call = 0; call < 4; call += 1) {
    tripSwitch.observe(failing);
  }
  tripSwitch.reset();
  expect(tripSwitch.observe(failing)).toBeUndefined();
});

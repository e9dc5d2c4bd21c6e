import { randomUUID } from "node:crypto";
import { adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import type { ProviderHealth } from "@adrelay/core";
import { expect, test } from "vitest";
import { FailureDetector } from "./failure-detector.ts";

const healthy = { kind: "healthy" } as const;
const failing = { kind: "failing", holdMs: 0 } as const;
const blocking = { kind: "blocking" } as const;
const refusing = { kind: "refusing" } as const;
const throttled = { kind: "throttled", holdMs: 9 } as const;

const newId = () => adResponseIdSchema.parse(randomUUID());
const ONE_ID = newId();

/** A detector of an account with two publishers that is told of one attempt after another, each of a new acknowledgment. */
function setup(publishers = 2) {
  let nowMs = 0;
  const detector = new FailureDetector(publishers, () => nowMs);
  const see = (health: ProviderHealth, { id = newId(), of = "alpha", isFirst = true } = {}) =>
    detector.observe({ publisher: publisherIdSchema.parse(of), id, isFirst }, health);
  const seeMany = (count: number, health: ProviderHealth, of: (at: number) => string = () => "alpha") =>
    Array.from({ length: count }, (_, at) => see(health, { of: of(at) }));
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { see, seeMany, pass, reset: () => detector.reset() };
}
const byTurns = (at: number) => (at % 2 === 0 ? "alpha" : "beta");

test.each([
  [failing, "outage"],
  [blocking, "auth"],
] as const)("25 attempts in a row that end as %j open the breaker, 24 don't", (health, reason) => {
  const seen = setup().seeMany(25, health, byTurns);
  expect(seen.slice(0, 24).every((trip) => trip === undefined)).toBe(true);
  expect(seen[24]).toEqual({ reason, holdMs: 0, accused: undefined });
});

test("a provider that fails four calls of five is still called", () => {
  const { see } = setup();
  const seen = Array.from({ length: 500 }, (_, at) =>
    see(at % 5 === 0 ? healthy : failing, { of: byTurns(at) }),
  );
  expect(seen.every((trip) => trip === undefined)).toBe(true);
});

test.each([30, 60, 80])(
  "a provider that fails a random %i percent of its calls is still called",
  (percent) => {
    // A generator of Park and Miller: the same numbers in each run.
    let state = 1 + percent;
    const chance = () => {
      state = (state * 48_271) % 2_147_483_647;
      return (100 * state) / 2_147_483_647;
    };
    for (let run = 0; run < 20; run += 1) {
      const { see, seeMany } = setup();
      seeMany(3, healthy);
      const seen = Array.from({ length: 3000 }, (_, at) =>
        see(chance() < percent ? failing : healthy, { of: byTurns(at) }),
      );
      expect(seen.every((trip) => trip === undefined)).toBe(true);
    }
  },
);

test("a provider that often fails needs more failures in a row, but not without bound", () => {
  const { see, seeMany } = setup();
  for (let succeeded = 0; succeeded < 100; succeeded += 1) {
    seeMany(60, failing, byTurns);
    see(healthy);
  }
  const trips = seeMany(200, failing, byTurns);
  expect(trips.findIndex((trip) => trip !== undefined)).toBe(199);
});

test("acknowledgments that were turned away before are no evidence when they are turned away again", () => {
  const { see, seeMany } = setup(1);
  for (let repeated = 0; repeated < 100; repeated += 1) {
    expect(see(blocking, { isFirst: false })).toBeUndefined();
  }
  expect(seeMany(25, blocking).at(-1)).toMatchObject({ reason: "auth" });
});

test("another publisher's failure of another kind is no evidence for a pause", () => {
  const { see, seeMany } = setup();
  see(blocking, { of: "beta" });
  expect(seeMany(10, throttled).every((trip) => trip === undefined)).toBe(true);
});

test.each([failing, blocking, throttled])(
  "one acknowledgment that always ends as %j says nothing about its account",
  (health) => {
    const { see, pass } = setup(1);
    const seen = Array.from({ length: 100 }, () => {
      pass(60_000);
      return see(health, { id: ONE_ID });
    });
    expect(seen.every((trip) => trip === undefined)).toBe(true);
  },
);

test.each([failing, blocking, throttled])(
  "one publisher whose attempts end as %j doesn't stop another whose attempts succeed",
  (health) => {
    const { see, seeMany, pass } = setup();
    const seen = Array.from({ length: 50 }, () => {
      pass(10_000);
      const trips = seeMany(20, health);
      see(healthy, { of: "beta" });
      return trips;
    });
    expect(seen.flat().every((trip) => trip === undefined)).toBe(true);
  },
);

test("one publisher is evidence only after nothing got through for 30 seconds, and then it is named", () => {
  const { see, seeMany, pass } = setup();
  expect(seeMany(30, failing).every((trip) => trip === undefined)).toBe(true);
  pass(30_000);
  expect(see(failing)).toEqual({ reason: "outage", holdMs: 0, accused: "alpha" });
});

test("an account with one publisher needs no other publisher's evidence", () => {
  expect(setup(1).seeMany(25, failing).at(-1)).toEqual({ reason: "outage", holdMs: 0, accused: undefined });
});

test("a refused key is the account's: two refusals open the breaker, one doesn't", () => {
  expect(setup().seeMany(2, refusing)).toEqual([
    undefined,
    { reason: "auth", holdMs: 0, accused: undefined },
  ]);
});

test("three acknowledgments that are throttled pause the account for the time that was asked for", () => {
  const { seeMany } = setup();
  seeMany(30, healthy);
  expect(seeMany(3, throttled, byTurns)).toEqual([
    undefined,
    undefined,
    { reason: "throttled", holdMs: 9, accused: undefined },
  ]);
});

test("a provider that throttles some of the acknowledgments and takes others is still called", () => {
  const { see, seeMany } = setup(1);
  see(throttled);
  const seen = Array.from({ length: 100 }, () => {
    see(healthy);
    return seeMany(8, throttled);
  });
  expect(seen.flat().every((trip) => trip === undefined)).toBe(true);
});

test("right after a start, a pause needs 25 throttled acknowledgments in a row, and 22 successes end that", () => {
  const { seeMany } = setup(1);
  expect(seeMany(24, throttled).every((trip) => trip === undefined)).toBe(true);
  expect(seeMany(1, throttled)).toMatchObject([{ reason: "throttled", holdMs: 9 }]);
  const after = (successes: number) => {
    const fresh = setup(1);
    fresh.seeMany(successes, healthy);
    return fresh.seeMany(3, throttled).at(-1);
  };
  expect(after(21)).toBeUndefined();
  expect(after(22)).toMatchObject({ reason: "throttled" });
});

test("a provider that throttled some, and then took all for a while, pauses after three again", () => {
  const { see, seeMany } = setup(1);
  see(throttled);
  seeMany(30, healthy);
  expect(seeMany(3, throttled).at(-1)).toMatchObject({ reason: "throttled" });
});

test("acknowledgments that are throttled again are no evidence for a pause, but 25 of them are for an outage", () => {
  const { see, seeMany } = setup(1);
  const again = () => see(throttled, { isFirst: false });
  expect(Array.from({ length: 24 }, again).every((trip) => trip === undefined)).toBe(true);
  expect(again()).toMatchObject({ reason: "outage", holdMs: 9 });
  see(healthy);
  expect(seeMany(2, throttled).every((trip) => trip === undefined)).toBe(true);
});

test("failures before a success or a reset don't count", () => {
  const { see, seeMany, reset } = setup();
  seeMany(24, failing, byTurns);
  see(healthy);
  expect(seeMany(24, failing, byTurns).every((trip) => trip === undefined)).toBe(true);
  reset();
  expect(see(failing)).toBeUndefined();
});

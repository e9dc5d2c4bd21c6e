import { Registry } from "prom-client";
import { expect, test } from "vitest";
import { LoginGuard } from "./login-guard.ts";

function setup() {
  let nowMs = 1000;
  const registry = new Registry();
  const guard = new LoginGuard({ registry, log: { warn: () => {} }, now: () => nowMs });
  /** How many of these guesses are looked at. */
  const guess = (address: string, count: number) => {
    let tried = 0;
    for (let one = 0; one < count; one += 1) {
      if (guard.waitSeconds(address) === 0) {
        guard.recordRefusal("admin", address);
        tried += 1;
      }
    }
    return tried;
  };
  const pass = (ms: number) => {
    nowMs += ms;
  };
  return { guard, guess, pass, registry };
}

test("of 2,000 guesses in a second five are looked at", () => {
  const { guard, guess } = setup();
  expect(guess("203.0.113.7", 2000)).toBe(5);
  expect(guard.waitSeconds("203.0.113.7")).toBe(6);
  expect(guard.waitSeconds("203.0.113.8")).toBe(0);
});

test("an address that guesses all the time has 15 looked at in a minute, then 10", () => {
  const { guess, pass } = setup();
  const minute = () => {
    let tried = 0;
    for (let second = 0; second < 60; second += 1) {
      tried += guess("203.0.113.7", 50);
      pass(1000);
    }
    return tried;
  };
  expect([minute(), minute(), minute()]).toEqual([14, 10, 10]);
});

test("after half a minute of peace all five are free again", () => {
  const { guess, pass } = setup();
  guess("203.0.113.7", 5);
  pass(30_000);
  expect(guess("203.0.113.7", 100)).toBe(5);
});

test.each([
  ["2001:db8:1:2::1", "2001:db8:1:2:3:4:5:6", true],
  ["2001:db8::1", "2001:db8::7:0:0:1", true],
  ["2001:db8:1:2::1", "2001:db8:1:3::1", false],
  ["::1", "::2", true],
  ["fe80::1%eth0", "fe80::2%eth0", true],
])("the addresses %s and %s share their refusals: %s", (one, other, shared) => {
  const { guard, guess } = setup();
  guess(one, 5);
  expect(guard.waitSeconds(other) > 0).toBe(shared);
});

test("guesses from many addresses take a bounded memory", () => {
  const { guard, guess } = setup();
  guess("203.0.113.7", 5);
  for (let one = 0; one < 10_000; one += 1) {
    guess(`198.18.${one >> 8}.${one & 255}`, 1);
  }
  // The address that was refused longest ago is forgotten.
  expect(guard.waitSeconds("203.0.113.7")).toBe(0);
});

test("refusals are counted by what was opened and why", async () => {
  const { guard, guess, registry } = setup();
  guess("203.0.113.7", 2);
  guard.count("metrics", "missing");
  const { values = [] } = (await registry.getMetricsAsJSON())[0] ?? {};
  const counted = values.filter(({ value }) => value > 0).map(({ labels, value }) => ({ ...labels, value }));
  expect(counted).toEqual([
    { endpoint: "admin", reason: "unknown", value: 2 },
    { endpoint: "metrics", reason: "missing", value: 1 },
  ]);
});

import { expect, test } from "vitest";
import { eventually } from "./inspection.ts";

/** Waits with a check that always fails. Returns when its checks came, in milliseconds since the start. */
async function failingChecks(timeoutMs: number): Promise<readonly number[]> {
  const startedAtMs = performance.now();
  const atMs: number[] = [];
  const waiting = eventually(() => {
    atMs.push(performance.now() - startedAtMs);
    throw new TypeError(`check ${atMs.length}`);
  }, timeoutMs);
  const error: unknown = await waiting.catch((thrown: unknown) => thrown);
  expect(error).toMatchObject({ message: `check ${atMs.length}` });
  return atMs;
}

test("a wait throws the last failure, after a check at the end of its time", async () => {
  const [last = 0, before = 0] = (await failingChecks(150)).toReversed();
  expect(before).toBeLessThanOrEqual(150);
  expect(last).toBeGreaterThan(150);
});

test("the longer a wait lasts, the fewer checks it makes", async () => {
  const atMs = await failingChecks(1200);
  // A check every 20 ms would be sixty.
  expect(atMs.length).toBeLessThan(48);
});

test("a wait returns what its check returns, and checks at once", async () => {
  expect(await eventually(() => "value", 0)).toBe("value");
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { atMostEvery } from "./at-most-every.ts";

beforeEach(() => void vi.useFakeTimers({ toFake: ["performance"] }));
afterEach(() => void vi.useRealTimers());

test("the first is passed on at once, then one per interval", () => {
  const passed: number[] = [];
  const report = atMostEvery(1000, (value: number) => void passed.push(value));
  for (let at = 0; at < 30; at += 1) {
    report(at);
    vi.advanceTimersByTime(100);
  }
  expect(passed).toEqual([0, 10, 20]);
});

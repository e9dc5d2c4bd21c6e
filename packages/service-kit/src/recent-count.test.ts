import { expect, test } from "vitest";
import { RecentCount } from "./recent-count.ts";

const MINUTE_MS = 60_000;

test("what happened in the last minutes is counted, and forgotten after them", () => {
  const count = new RecentCount(2);
  for (const minute of [0, 0, 1, 3]) {
    count.add(minute * MINUTE_MS);
  }
  expect([3, 4, 5, 6].map((minute) => count.sum(minute * MINUTE_MS))).toEqual([2, 1, 1, 0]);
});

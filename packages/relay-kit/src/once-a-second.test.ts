import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { OnceASecond } from "./once-a-second.ts";

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function setup() {
  const reported: [latest: string, count: number][] = [];
  return { reported, reports: new OnceASecond<string>((latest, count) => reported.push([latest, count])) };
}

test("the first event is reported at once, those of the next second together", () => {
  const { reported, reports } = setup();
  for (const event of ["a", "b", "c"]) {
    reports.add(event);
  }
  expect(reported).toEqual([["a", 1]]);
  vi.advanceTimersByTime(1000);
  expect(reported).toEqual([
    ["a", 1],
    ["c", 2],
  ]);
  vi.advanceTimersByTime(1000);
  reports.add("d");
  expect(reported).toHaveLength(3);
});

test("a flush reports what waits, and nothing twice", () => {
  const { reported, reports } = setup();
  reports.flush();
  expect(reported).toEqual([]);
  for (const event of ["a", "b", "c"]) {
    reports.add(event);
  }
  reports.flush();
  reports.flush();
  const all = [
    ["a", 1],
    ["c", 2],
  ];
  expect(reported).toEqual(all);
  vi.advanceTimersByTime(5000);
  expect(reported).toEqual(all);
  reports.add("d");
  expect(reported.at(-1)).toEqual(["d", 1]);
});

import { expect, test } from "vitest";
import { countPlaces } from "./count-places.ts";

test("each account has places for all its attempts, within the bound", () => {
  expect(countPlaces(50, 1)).toBe(50);
  expect(countPlaces(50, 3)).toBe(150);
  expect(countPlaces(50, 30)).toBe(1000);
});

test("one account never takes every place of a worker", () => {
  for (const attemptsMax of [1, 50, 999, 1000, 10_000]) {
    expect(countPlaces(attemptsMax, 2)).toBe(2 * attemptsMax);
  }
  expect(countPlaces(10_000, 1)).toBe(10_000);
});

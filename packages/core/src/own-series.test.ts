import { expect, test } from "vitest";
import { OwnSeries } from "./own-series.ts";

const DAY_MS = 86_400_000;

test("values beyond the limit share other, and keep doing so", () => {
  const series = new OwnSeries(2);
  expect(["a", "b", "c", "a", "c"].map((value) => series.use(value, 0))).toEqual([
    "a",
    "b",
    "other",
    "a",
    "other",
  ]);
  expect([...series.values]).toEqual(["a", "b"]);
});

test("a value that nobody used for a day makes room for another", () => {
  const series = new OwnSeries(2);
  series.use("a", 0);
  series.use("b", 0);
  series.use("b", DAY_MS);
  expect(series.expire(DAY_MS)).toEqual([]);
  expect(series.expire(DAY_MS + 1)).toEqual(["a"]);
  expect(["c", "a", "b"].map((value) => series.use(value, DAY_MS + 1))).toEqual(["c", "other", "b"]);
});

test("the value other takes no room", () => {
  const series = new OwnSeries(1);
  expect(series.use("other", 0)).toBe("other");
  expect(series.has("other")).toBe(false);
  expect(series.use("a", 0)).toBe("a");
});

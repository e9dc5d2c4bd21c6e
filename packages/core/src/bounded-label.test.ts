import { expect, test } from "vitest";
import { BoundedLabel } from "./bounded-label.ts";

const DAY_MS = 86_400_000;

test("values beyond the limit share other, and keep doing so", () => {
  const label = new BoundedLabel(2);
  expect(["a", "b", "c", "a", "c"].map((value) => label.use(value, 0))).toEqual([
    "a",
    "b",
    "other",
    "a",
    "other",
  ]);
  expect([...label.own]).toEqual(["a", "b"]);
});

test("a value that nobody used for a day makes room for another", () => {
  const label = new BoundedLabel(2);
  label.use("a", 0);
  label.use("b", 0);
  label.use("b", DAY_MS);
  expect(label.expire(DAY_MS)).toEqual([]);
  expect(label.expire(DAY_MS + 1)).toEqual(["a"]);
  expect(["c", "a", "b"].map((value) => label.use(value, DAY_MS + 1))).toEqual(["c", "other", "b"]);
});

test("the value other takes no room", () => {
  const label = new BoundedLabel(1);
  expect(label.use("other", 0)).toBe("other");
  expect(label.has("other")).toBe(false);
  expect(label.use("a", 0)).toBe("a");
});

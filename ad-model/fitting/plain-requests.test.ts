import { expect, test } from "vitest";
import { plainRequestOf } from "./plain-requests.ts";

test("a term is put into requests of its language, in turns", () => {
  const requests = [0, 1, 2, 3, 4, 5, 6].map((index) =>
    plainRequestOf({ language: "de", text: "Zelt" }, index),
  );
  expect(requests[0]).toBe("Empfiehl mir Zelt");
  expect(new Set(requests).size).toBe(6);
  expect(requests[6]).toBe(requests[0]);
});

test.each([
  ["en", "how do I find a good tent"],
  ["en", "which tent?"],
  ["xx", "tent"],
])("in %s %j is no name of a thing that can be asked for", (language, text) => {
  expect(plainRequestOf({ language, text }, 0)).toBeUndefined();
});

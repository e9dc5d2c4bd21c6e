import { expect, test } from "vitest";
import { isAtLeast } from "./toolchain.mjs";

test.each([
  ["v24.0.0", "24.0.0"],
  ["v24.21.0", "24.3.9"],
  ["26.10.0", "24.21.0"],
  ["12.4.10", "12.4.2"],
  ["12.4.2\n", "12.4.2"],
])("%s is new enough for %s", (version, oldest) => {
  expect(isAtLeast(version, oldest)).toBe(true);
});

test.each([
  ["v20.20.2", "24.0.0"],
  ["12.4.1", "12.4.2"],
  ["9.99.99", "12.4.2"],
  ["24.0.0-rc.1", "24.0.0"],
  ["", "24.0.0"],
  ["no version", "24.0.0"],
])("%j is not new enough for %s", (version, oldest) => {
  expect(isAtLeast(version, oldest)).toBe(false);
});

import { imageMemorySettings } from "@adrelay/dev-servers";
import { expect, test } from "vitest";
import { isAtLeast, NODE_OLDEST } from "./toolchain.mjs";

/** The Node since which an option may stand in NODE_OPTIONS. An older one ends at once, with 9. */
const ALLOWED_SINCE: Readonly<Record<string, string>> = {
  "--max-semi-space-size": "18.10.0",
  "--max-old-space-size-percentage": "24.6.0",
};

test.each((imageMemorySettings()["NODE_OPTIONS"] ?? "").split(" "))(
  "the oldest Node that is used knows %s, which the apps get",
  (option) => {
    const since = ALLOWED_SINCE[option.split("=")[0] ?? ""] ?? "the table has no such option";
    expect(isAtLeast(NODE_OLDEST, since), since).toBe(true);
  },
);

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

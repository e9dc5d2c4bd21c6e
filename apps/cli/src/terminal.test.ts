import { expect, test } from "vitest";
import { describeBytes, describeMoment } from "./terminal.ts";

const NOW_MS = Date.parse("2026-11-28T12:00:00Z");

test.each([
  ["2026-11-28T11:57:00.900Z", "2026-11-28T11:57:00Z (3m ago)"],
  ["2026-11-28T14:00:00Z", "2026-11-28T14:00:00Z (in 2h)"],
  [null, "-"],
  ["soon", "-"],
])("the time %j is written as %s", (time, text) => {
  expect(describeMoment(time, NOW_MS)).toBe(text);
});

test.each([
  [0, "0 B"],
  [1023, "1023 B"],
  [1536, "1.5 KB"],
  [67_108_864, "64.0 MB"],
  [5_368_709_120, "5.0 GB"],
])("the size %d is written as %s", (bytes, text) => {
  expect(describeBytes(bytes)).toBe(text);
});

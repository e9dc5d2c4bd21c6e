import { expect, test } from "vitest";
import { describeMoment } from "./terminal.ts";

const NOW_MS = Date.parse("2026-11-28T12:00:00Z");

test.each([
  ["2026-11-28T11:57:00.900Z", "2026-11-28T11:57:00Z (3m ago)"],
  ["2026-11-28T14:00:00Z", "2026-11-28T14:00:00Z (in 2h)"],
  [null, "-"],
  ["soon", "-"],
])("the time %j is written as %s", (time, text) => {
  expect(describeMoment(time, NOW_MS)).toBe(text);
});

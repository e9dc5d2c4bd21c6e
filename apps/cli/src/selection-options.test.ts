import { expect, test } from "vitest";
import { parseMoment } from "./selection-options.ts";

const NOW_MS = Date.parse("2026-11-28T12:00:00Z");

test.each([
  ["2h", "2026-11-28T10:00:00.000Z"],
  ["1.5h", "2026-11-28T10:30:00.000Z"],
  ["0s", "2026-11-28T12:00:00.000Z"],
  ["99999999999w", "1970-01-01T00:00:00.000Z"],
  ["2026-11-28", "2026-11-28T00:00:00.000Z"],
  ["2026-11-28T09:30", "2026-11-28T09:30:00.000Z"],
  ["2026-11-28T09:30:15.250Z", "2026-11-28T09:30:15.250Z"],
  ["2026-11-28T09:30:00+02:00", "2026-11-28T07:30:00.000Z"],
])("as a value of --since, %s means %s", (text, time) => {
  expect(parseMoment("since", text, NOW_MS)).toBe(time);
});

test.each(["", "2", "2 hours", "h", "yesterday", "28.11.2026", "2026-13-01", "2026-11-28 09:00", "-2h"])(
  "--since refuses %j",
  (text) => {
    expect(() => parseMoment("since", text, NOW_MS)).toThrow("--since must be");
  },
);

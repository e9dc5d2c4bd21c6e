import { expect, test } from "vitest";
import { describeMoment, parseMoment } from "./moments.ts";

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
])("%s is %s", (text, time) => {
  expect(parseMoment("since", text, NOW_MS)).toBe(time);
});

test.each(["", "2", "2 hours", "h", "yesterday", "28.11.2026", "2026-13-01", "2026-11-28 09:00", "-2h"])(
  "%j is no moment",
  (text) => {
    expect(() => parseMoment("since", text, NOW_MS)).toThrow("--since wants");
  },
);

test.each([
  ["2026-11-28T11:57:00.900Z", "2026-11-28T11:57:00Z (3m ago)"],
  ["2026-11-28T14:00:00Z", "2026-11-28T14:00:00Z (in 2h)"],
  [null, "-"],
  ["soon", "-"],
])("for people %j is %s", (time, text) => {
  expect(describeMoment(time, NOW_MS)).toBe(text);
});

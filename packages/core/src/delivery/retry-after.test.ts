import fc from "fast-check";
import { expect, test } from "vitest";
import { parseRetryAfterMs, RETRY_AFTER_MAX_MS } from "./retry-after.ts";

const NOW_MS = Date.parse("Fri, 27 Nov 2026 12:00:00 GMT");

test.each([
  ["0", 0],
  ["7", 7000],
  [" 7 ", 7000],
  ["99999999999999999999", RETRY_AFTER_MAX_MS],
  ["Fri, 27 Nov 2026 12:00:30 GMT", 30_000],
  ["Fri, 27 Nov 2026 11:00:00 GMT", 0],
  ["Fri, 27 Nov 2099 11:00:00 GMT", RETRY_AFTER_MAX_MS],
  ["-1", undefined],
  ["1.5", undefined],
  ["soon", undefined],
  ["2026-11-27", undefined],
  ["Fri, 99 Nov 2026 12:00:30 GMT", undefined],
  ["", undefined],
  [undefined, undefined],
])("Retry-After %j asks for %j ms", (header, expected) => {
  expect(parseRetryAfterMs(header, NOW_MS)).toBe(expected);
});

test("no header asks for a negative or unbounded wait", () => {
  fc.assert(
    fc.property(fc.string(), (header) => {
      const waitMs = parseRetryAfterMs(header, NOW_MS) ?? 0;
      expect(waitMs).toBeGreaterThanOrEqual(0);
      expect(waitMs).toBeLessThanOrEqual(RETRY_AFTER_MAX_MS);
    }),
  );
});

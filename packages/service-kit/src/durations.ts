/** Time spans in settings: `500ms`, `30s`, `15m`, `72h`, `30d`, or a number of milliseconds. Every setting takes both. */
import ms from "ms";
import { z } from "zod";

/** Parses a time span to whole milliseconds; undefined if the text isn't one. A number without a unit is milliseconds. */
export function parseDurationMs(text: string): number | undefined {
  if (!/^\d+(\.\d+)?\s?(ms|s|m|h|d)$|^\d+$/.test(text)) {
    return undefined;
  }
  // `ms` reads every text that matches the pattern above, but its type accepts literals only.
  const valueMs = ms(text as ms.StringValue);
  return Number.isFinite(valueMs) ? Math.round(valueMs) : undefined;
}

/** A time span between two bounds, both included, as whole milliseconds. */
export function durationBetween(minMs: number, maxMs: number) {
  return z.string().transform((text, context) => {
    const valueMs = parseDurationMs(text);
    if (valueMs === undefined) {
      const message = "must be a time span such as 30s, 15m, 72h or 30d, or a number of milliseconds";
      context.addIssue({ code: "custom", message });
      return z.NEVER;
    }
    if (valueMs < minMs || valueMs > maxMs) {
      context.addIssue({ code: "custom", message: `must be at least ${ms(minMs)} and at most ${ms(maxMs)}` });
      return z.NEVER;
    }
    return valueMs;
  });
}

const DAY_MS = 86_400_000;

/** A time span of at least 1 ms and at most 3650 days. */
export const durationType = durationBetween(1, 3650 * DAY_MS);

/** A number of whole days between two bounds, both included: `30` or `30d`. */
export function daysBetween(min: number, max: number) {
  return z
    .string()
    .regex(/^\d+d?$/, "must be a number of days, such as 30 or 30d")
    .transform((text) => Number.parseInt(text, 10))
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
}

import ms from "ms";
import { UsageError } from "./exit-codes.ts";

/** Reads --since and --until: an ISO 8601 time, or a time span such as 2h, meant as so long ago. */
export function parseMoment(name: string, text: string, nowMs: number): string {
  const agoMs = parseSpanMs(text);
  if (agoMs !== undefined) {
    // Nothing is older than 1970, and dates end somewhere.
    return new Date(Math.max(0, nowMs - agoMs)).toISOString();
  }
  // Other forms that Date takes differ from engine to engine.
  const atMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text)
    ? Date.parse(/T.*(Z|[+-]\d\d:\d\d)$|^[^T]*$/.test(text) ? text : `${text}Z`)
    : Number.NaN;
  if (Number.isNaN(atMs)) {
    throw new UsageError(`--${name} wants a time such as 2026-11-28T09:00:00Z (UTC), or a span such as 2h`);
  }
  return new Date(atMs).toISOString();
}

/** Milliseconds of a span with its unit; undefined for what is none. */
export function parseSpanMs(text: string): number | undefined {
  // The pattern is a subset of what `ms` reads; its type only knows literals.
  return /^\d+(\.\d+)?(ms|s|m|h|d|w)$/.test(text) ? Math.round(ms(text as ms.StringValue)) : undefined;
}

/** A time for people: to the second, and how long ago. */
export function describeMoment(time: string | null, nowMs: number): string {
  const atMs = time === null ? Number.NaN : Date.parse(time);
  if (Number.isNaN(atMs)) {
    return "-";
  }
  return `${new Date(atMs).toISOString().slice(0, 19)}Z (${describeAge(time, nowMs)})`;
}

/** How long ago, or in how long. */
export function describeAge(time: string | null, nowMs: number): string {
  const agoMs = time === null ? Number.NaN : nowMs - Date.parse(time);
  if (Number.isNaN(agoMs)) {
    return "-";
  }
  return agoMs >= 0 ? `${ms(agoMs)} ago` : `in ${ms(-agoMs)}`;
}

export function describeSeconds(seconds: number | null): string {
  const whole = Math.round(seconds ?? 0);
  return seconds === null ? "-" : whole === 0 ? "0s" : ms(whole * 1000);
}

/** A time as answers show it: ISO 8601 in UTC; null for none. */
export function isoTime(atMs: number): string;
export function isoTime(atMs: number | undefined): string | null;
export function isoTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}

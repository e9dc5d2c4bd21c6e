/** A provider can't put us off for longer than this: an acknowledgment has an age limit of its own. */
export const RETRY_AFTER_MAX_MS = 3_600_000;

/** The only date form that senders may use (RFC 9110, section 5.6.7). */
const HTTP_DATE = /^(Mon|Tue|Wed|Thu|Fri|Sat|Sun), \d{2} [A-Z][a-z]{2} \d{4} \d{2}:\d{2}:\d{2} GMT$/;

/**
 * Milliseconds to wait by a Retry-After header, in either form (RFC 9110, section 10.2.3): seconds, or a
 * date. Bounded by RETRY_AFTER_MAX_MS; undefined for nonsense.
 *
 * @param nowMs the caller's clock, milliseconds since 1970
 */
export function parseRetryAfterMs(header: string | undefined, nowMs: number): number | undefined {
  const text = header?.trim() ?? "";
  if (/^\d+$/.test(text)) {
    return Math.min(Number(text) * 1000, RETRY_AFTER_MAX_MS);
  }
  const atMs = HTTP_DATE.test(text) ? Date.parse(text) : Number.NaN;
  return Number.isNaN(atMs) ? undefined : Math.min(Math.max(atMs - nowMs, 0), RETRY_AFTER_MAX_MS);
}

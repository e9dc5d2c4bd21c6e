import { CALLER_TIMEOUT_MAX_MS } from "../../config.ts";

export const TIMEOUT_HEADER = "X-Adrelay-Timeout-Ms";

/** The time limit that a caller set for an injection; undefined if the header isn't a whole number in range. */
export function parseTimeoutHeader(header: string | undefined, fallbackMs: number): number | undefined {
  if (header === undefined) {
    return fallbackMs;
  }
  const timeoutMs = /^\d{1,9}$/.test(header.trim()) ? Number(header) : 0;
  return timeoutMs >= 1 && timeoutMs <= CALLER_TIMEOUT_MAX_MS ? timeoutMs : undefined;
}

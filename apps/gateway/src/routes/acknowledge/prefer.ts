import { CALLER_TIMEOUT_MAX_MS } from "../../config.ts";

/** How long a caller wants to wait for the outcome, and how to confirm that to it (RFC 7240). */
export interface Preference {
  readonly waitMs: number;
  /** Value of Preference-Applied; undefined if the caller preferred nothing that we know. */
  readonly applied: string | undefined;
}

const NO_WAIT = { waitMs: 0, applied: "respond-async" } as const;

/**
 * Reads `Prefer: respond-async` and `Prefer: wait=SECONDS` (whole seconds, as RFC 7240 has it). The first
 * of each counts; respond-async alone means no wait, and together with wait the wait is its limit.
 */
export function parsePrefer(header: string | undefined, defaultWaitMs: number): Preference {
  if (header === undefined) {
    return { waitMs: defaultWaitMs, applied: undefined };
  }
  if (header === NO_WAIT.applied) {
    return NO_WAIT;
  }
  const preferences = header
    .toLowerCase()
    .split(",")
    .map((part) => part.split(";")[0]?.trim() ?? "");
  const wait = preferences
    .map((part) => /^wait\s*=\s*"?(\d{1,9})"?$/.exec(part)?.[1])
    .find((found) => found !== undefined);
  if (wait !== undefined) {
    const waitMs = Math.min(Number(wait) * 1000, CALLER_TIMEOUT_MAX_MS);
    return { waitMs, applied: `wait=${waitMs / 1000}` };
  }
  return preferences.includes(NO_WAIT.applied) ? NO_WAIT : { waitMs: defaultWaitMs, applied: undefined };
}

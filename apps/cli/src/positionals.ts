import { adResponseIdSchema, PAGE_ROWS_MAX, REPLAY_RATE_DEFAULT, REPLAY_RATE_MAX } from "@adrelay/contract";
import type { Argv } from "yargs";
import { UsageError } from "./exit-codes.ts";
import { parseMoment } from "./moments.ts";

function checkId(text: string): string {
  const parsed = adResponseIdSchema.safeParse(text);
  if (!parsed.success) {
    throw new UsageError(`an id is a UUID, which ${JSON.stringify(text)} is not`);
  }
  return parsed.data;
}

/** The id of one ad response. */
export const adResponsePositional = {
  describe: "ad_response_id",
  type: "string",
  coerce: checkId,
} as const;

/** The ids of some ad responses, each once. */
export const adResponsesPositional = {
  describe: "ad_response_id, one or more",
  type: "string",
  array: true,
  // Else the help shows an empty list; the parser then gives a list of undefined where there are none.
  default: undefined,
  coerce: (ids: readonly (string | undefined)[] = []) => [
    ...new Set(ids.filter((id) => id !== undefined).map(checkId)),
  ],
} as const;

export const replayPositional = { describe: "replay_id", type: "string" } as const;

export function adResponsePath(id: string): string {
  return `/acknowledgments/${encodeURIComponent(id)}`;
}

export function replayPath(id: string): string {
  return `/replays/${encodeURIComponent(id)}`;
}

/** A list's place, as the page before told it. */
export const cursorOption = {
  type: "string",
  requiresArg: true,
  describe: "Goes on where the page before ended",
} as const;

/** Which dead letters are meant. */
export function filterOptions<A>(yargs: Argv<A>) {
  const moment = (name: "since" | "until") => (text: string | undefined) =>
    text === undefined ? undefined : parseMoment(name, text, Date.now());
  return yargs
    .option("publisher", { type: "string", requiresArg: true, describe: "Of this publisher alone" })
    .option("reason", { type: "string", requiresArg: true, describe: "That died for this reason alone" })
    .option("since", {
      type: "string",
      requiresArg: true,
      describe: "Not before: a time, or a span such as 2h (ago)",
      coerce: moment("since"),
    })
    .option("until", {
      type: "string",
      requiresArg: true,
      describe: "Before: a time, or a span such as 30m (ago)",
      coerce: moment("until"),
    });
}

export function limitOption(fallback: number) {
  return {
    type: "number",
    requiresArg: true,
    describe: `Rows of a page, 1 to ${PAGE_ROWS_MAX}`,
    default: fallback,
    coerce: (value: number) => checkWhole("limit", value, PAGE_ROWS_MAX),
  } as const;
}

export const rateOption = {
  type: "number",
  requiresArg: true,
  describe: `How many are put back a second, 1 to ${REPLAY_RATE_MAX} (${REPLAY_RATE_DEFAULT} if not given)`,
  coerce: (value: number | undefined) =>
    value === undefined ? undefined : checkWhole("rate", value, REPLAY_RATE_MAX),
} as const;

function checkWhole(name: string, value: number, max: number): number {
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw new UsageError(`--${name} wants a whole number from 1 to ${max}`);
  }
  return value;
}

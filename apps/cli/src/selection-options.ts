/** Options by which commands select acknowledgments, page through them, and change many of them. */
import {
  PAGE_ROWS_MAX,
  REPLAY_RATE_DEFAULT,
  REPLAY_RATE_MAX,
  REPLAY_SAMPLE_DEFAULT,
  REPLAY_SAMPLE_MAX,
  REPLAY_STOP_SHARE_DEFAULT,
} from "@adrelay/contract";
import ms from "ms";
import type { Argv } from "yargs";
import { UsageError } from "./exit-codes.ts";

export const yesOption = {
  type: "boolean",
  alias: "y",
  default: false,
  describe: "Don't ask for confirmation",
} as const;

/** The place in a list where the page before ended, as the command printed it. */
export const cursorOption = {
  type: "string",
  requiresArg: true,
  describe: "Continue after the page that printed this cursor",
} as const;

/** Values of the options that select dead letters. */
export interface DeadFilterArgs {
  readonly publisher?: string | undefined;
  readonly reason?: string | undefined;
  readonly code?: string | undefined;
  readonly unknown?: true | undefined;
  readonly since?: string | undefined;
  readonly until?: string | undefined;
}

/** Only ad responses whose ids the relay doesn't know. */
const unknownOption = {
  type: "boolean",
  describe: "Only ids that nobody injected through the relay",
  // `--no-unknown` selects nothing else than its absence does.
  coerce: (value: boolean | undefined): true | undefined => (value === true ? true : undefined),
} as const;

/** A filter as the query of a list has it. */
export function queryOf({ unknown, ...filter }: DeadFilterArgs): Record<string, string | undefined> {
  return { ...filter, unknown: unknown && "true" };
}

/** Options that select dead letters. */
export function filterOptions<A>(yargs: Argv<A>) {
  return spanOptions(yargs, { things: "dead letters", happened: "Died" })
    .option("reason", { type: "string", requiresArg: true, describe: "Only dead letters with this reason" })
    .option("code", {
      type: "string",
      requiresArg: true,
      describe: "Only dead letters with this code of the provider's, which `dead list` shows",
    })
    .option("unknown", unknownOption);
}

/** Options that select by publisher and time. */
function spanOptions<A>(
  yargs: Argv<A>,
  { things, happened }: { readonly things: string; readonly happened: string },
) {
  const moment = (name: "since" | "until") => (text: string | undefined) => {
    if (name === "since" && text !== undefined && parseSpanMs(text) === 0) {
      throw new UsageError(`--since ${text} would cover nothing: it means from now on`);
    }
    return text === undefined ? undefined : parseMoment(name, text, Date.now());
  };
  return yargs
    .option("publisher", { type: "string", requiresArg: true, describe: `Only ${things} of this publisher` })
    .option("since", {
      type: "string",
      requiresArg: true,
      describe: `${happened} at this time or later: a time, or how long ago, such as 2h`,
      coerce: moment("since"),
    })
    .option("until", {
      type: "string",
      requiresArg: true,
      describe: `${happened} before this time: a time, or how long ago, such as 30m`,
      coerce: moment("until"),
    });
}

/** Options that select queued acknowledgments. */
export function queuedOptions<A>(yargs: Argv<A>) {
  return spanOptions(yargs, { things: "acknowledgments", happened: "Put on the queue" }).option(
    "unknown",
    unknownOption,
  );
}

/** Options of a change of many dead letters. */
export function bulkOptions<A>(yargs: Argv<A>) {
  return changeOptions(filterOptions(yargs), "All dead letters");
}

/** Options of any change in bulk. */
export function changeOptions<A>(yargs: Argv<A>, all: string) {
  return yargs
    .option("all", { type: "boolean", default: false, describe: all })
    .option("dry-run", { type: "boolean", default: false, describe: "Only print how many match" })
    .option("wait", {
      type: "boolean",
      default: true,
      describe: "Show the progress until the end; --no-wait starts it and returns",
    })
    .option("yes", yesOption);
}

export function limitOption(fallback: number) {
  return {
    type: "number",
    requiresArg: true,
    describe: `Rows per page, 1 to ${PAGE_ROWS_MAX}`,
    default: fallback,
    coerce: (value: number) => checkWhole("limit", value, PAGE_ROWS_MAX),
  } as const;
}

export const rateOption = {
  type: "number",
  requiresArg: true,
  describe: `How many to put back per second, 1 to ${REPLAY_RATE_MAX} (default: ${REPLAY_RATE_DEFAULT})`,
  coerce: (value: number | undefined) =>
    value === undefined ? undefined : checkWhole("rate", value, REPLAY_RATE_MAX),
} as const;

export const stopShareOption = {
  type: "string",
  requiresArg: true,
  describe: `Stop if this share of the replayed ones fails again, more than 0 and at most 1, or never (default: ${REPLAY_STOP_SHARE_DEFAULT})`,
  coerce: parseShare,
} as const;

export const stopAfterOption = {
  type: "number",
  requiresArg: true,
  describe: `How many must have ended before it can stop, 1 to ${REPLAY_SAMPLE_MAX} (default: ${REPLAY_SAMPLE_DEFAULT})`,
  coerce: (value: number | undefined) =>
    value === undefined ? undefined : checkWhole("stop-after", value, REPLAY_SAMPLE_MAX),
} as const;

/** Null means never. */
function parseShare(text: string | undefined): number | null | undefined {
  if (text === undefined || text === "never") {
    return text === undefined ? undefined : null;
  }
  const share = /^\d*\.?\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(share > 0 && share <= 1)) {
    throw new UsageError("--stop-at-share must be more than 0 and at most 1, such as 0.5, or never");
  }
  return share;
}

function checkWhole(name: string, value: number, max: number): number {
  if (!Number.isInteger(value) || value < 1 || value > max) {
    throw new UsageError(`--${name} must be a whole number from 1 to ${max}`);
  }
  return value;
}

/** Parses the value of --since or --until: an ISO 8601 time, or a time span such as 2h, which means two hours ago. */
export function parseMoment(name: string, text: string, nowMs: number): string {
  const agoMs = parseSpanMs(text);
  if (agoMs !== undefined) {
    // Nothing here is older than 1970, and a very long span would leave the range of dates.
    return new Date(Math.max(0, nowMs - agoMs)).toISOString();
  }
  // `Date` also parses other forms, but not in the same way in each JavaScript engine.
  const atMs = /^\d{4}-\d\d-\d\d(T\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:\d\d)?)?$/.test(text)
    ? Date.parse(/T.*(Z|[+-]\d\d:\d\d)$|^[^T]*$/.test(text) ? text : `${text}Z`)
    : Number.NaN;
  if (Number.isNaN(atMs)) {
    throw new UsageError(
      `--${name} must be a time such as 2026-11-28T09:00:00Z (UTC), or a time span such as 2h`,
    );
  }
  return new Date(atMs).toISOString();
}

/** The milliseconds of a time span with its unit; undefined if the text is not a time span. */
export function parseSpanMs(text: string): number | undefined {
  // The pattern is a subset of what `ms` parses, but the type of `ms` accepts only literals.
  return /^\d+(\.\d+)?(ms|s|m|h|d|w)$/.test(text) ? Math.round(ms(text as ms.StringValue)) : undefined;
}

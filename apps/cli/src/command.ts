/** How a command is defined, the options that every command has, and the options that several commands share. */
import { adResponseIdSchema, PAGE_ROWS_MAX, REPLAY_RATE_DEFAULT, REPLAY_RATE_MAX } from "@adrelay/contract";
import ms from "ms";
import type { ArgumentsCamelCase, Argv } from "yargs";
import { type ExitCode, UsageError } from "./exit-codes.ts";
import type { LocalSession, Session } from "./session.ts";

/** Values of the options that every command has. */
export interface GlobalArgs {
  readonly url: string | undefined;
  readonly tokenFile: string | undefined;
  readonly json: boolean;
  readonly timeoutMs: number;
}

/** One command: its words, its options and its action in a session `S`. */
export interface Command<A, S> {
  readonly words: string;
  readonly describe: string;
  options(yargs: Argv<object>): Argv<A>;
  run(args: ArgumentsCamelCase<A>, session: S): Promise<ExitCode>;
}

/** A command's action, and the session that it needs: `local` needs neither a gateway nor a token. */
type Action =
  | { readonly kind: "with_gateway"; run(session: Session): Promise<ExitCode> }
  | { readonly kind: "local"; run(session: LocalSession): Promise<ExitCode> };

/** Opens a session for a command and runs the command in it. */
export type Start = (args: GlobalArgs, action: Action) => Promise<void>;

/** Adds a command to a parser. */
export type AddTo = (yargs: Argv<object>, start: Start) => Argv<object>;

export function defineCommand<A>({ words, describe, options, run }: Command<A, Session>): AddTo {
  return (yargs, start) =>
    yargs.command(words, describe, options, (args) =>
      start(readGlobals(args), { kind: "with_gateway", run: (session) => run(args, session) }),
    );
}

/** Defines a command that needs neither a gateway nor a token. */
export function defineLocalCommand<A>({ words, describe, options, run }: Command<A, LocalSession>): AddTo {
  return (yargs, start) =>
    yargs.command(words, describe, options, (args) =>
      start(readGlobals(args), { kind: "local", run: (session) => run(args, session) }),
    );
}

/** The options of every command are added to the root parser, so a command's own type does not have them. */
function readGlobals(args: Readonly<Record<string, unknown>>): GlobalArgs {
  const text = (value: unknown) => (typeof value === "string" ? value : undefined);
  return {
    url: text(args["url"]),
    tokenFile: text(args["tokenFile"]),
    json: args["json"] === true,
    timeoutMs: Number(args["timeout"]),
  };
}

const DEFAULT_TIMEOUT = "10s";

/** One day. Node's timers can't run for much longer than three weeks. */
const TIMEOUT_MAX_MS = 86_400_000;

/** The names of the options that every command has. */
export const GLOBAL_OPTIONS = ["url", "token-file", "json", "timeout"] as const;

export function addGlobals(parser: Argv<object>): Argv<object> {
  return parser
    .option("url", {
      type: "string",
      requiresArg: true,
      describe:
        "Address of the gateway's ops listener (default: ADRELAY_URL, a running npm start, or http://127.0.0.1:8081)",
    })
    .option("token-file", {
      type: "string",
      requiresArg: true,
      describe:
        "File with the admin token (default: ADRELAY_ADMIN_TOKEN, ADMIN_TOKEN, or the token of a running npm start)",
    })
    .option("json", {
      type: "boolean",
      default: false,
      describe: "Print only the API's answer, unchanged",
    })
    .option("timeout", {
      type: "string",
      requiresArg: true,
      default: DEFAULT_TIMEOUT,
      describe: "How long to wait for one answer",
      coerce: parseTimeout,
    });
}

function parseTimeout(text: string): number {
  const timeoutMs = parseSpanMs(text);
  if (timeoutMs === undefined || timeoutMs < 1 || timeoutMs > TIMEOUT_MAX_MS) {
    throw new UsageError("--timeout must be a time span such as 500ms or 30s, at most one day");
  }
  return timeoutMs;
}

/** The id of one ad response. */
export const adResponsePositional = {
  describe: "ad_response_id",
  type: "string",
  coerce: checkId,
} as const;

/** The ids of several ad responses. An id that is given twice counts once. */
export const adResponsesPositional = {
  describe: "ad_response_id, one or more",
  type: "string",
  array: true,
  // Without this, the help would show an empty list as default. With it, yargs passes [undefined] if there are no ids.
  default: undefined,
  coerce: (ids: readonly (string | undefined)[] = []) => [
    ...new Set(ids.filter((id) => id !== undefined).map(checkId)),
  ],
} as const;

export const replayPositional = { describe: "replay_id", type: "string" } as const;

function checkId(text: string): string {
  const parsed = adResponseIdSchema.safeParse(text);
  if (!parsed.success) {
    throw new UsageError(`an id must be a UUID, not ${JSON.stringify(text)}`);
  }
  return parsed.data;
}

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

/** Options that select dead letters. */
export function filterOptions<A>(yargs: Argv<A>) {
  const moment = (name: "since" | "until") => (text: string | undefined) =>
    text === undefined ? undefined : parseMoment(name, text, Date.now());
  return yargs
    .option("publisher", {
      type: "string",
      requiresArg: true,
      describe: "Only dead letters of this publisher",
    })
    .option("reason", { type: "string", requiresArg: true, describe: "Only dead letters with this reason" })
    .option("since", {
      type: "string",
      requiresArg: true,
      describe: "Died at this time or later: a time, or how long ago, such as 2h",
      coerce: moment("since"),
    })
    .option("until", {
      type: "string",
      requiresArg: true,
      describe: "Died before this time: a time, or how long ago, such as 30m",
      coerce: moment("until"),
    });
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
function parseSpanMs(text: string): number | undefined {
  // The pattern is a subset of what `ms` parses, but the type of `ms` accepts only literals.
  return /^\d+(\.\d+)?(ms|s|m|h|d|w)$/.test(text) ? Math.round(ms(text as ms.StringValue)) : undefined;
}

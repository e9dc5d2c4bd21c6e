/** How the command ends: its exit codes, and why a call of the admin API failed, in words that say what to do. */
import type { Problem } from "@adrelay/contract";

/** Exit codes, which scripts rely on. */
export const EXIT = {
  done: 0,
  refused: 1,
  usage: 2,
  unavailable: 3,
  denied: 4,
  interrupted: 130,
} as const;
export type ExitCode = (typeof EXIT)[keyof typeof EXIT];

/** Each exit code's meaning, for the help and the documentation. */
export const EXIT_MEANINGS = {
  [EXIT.done]: "done",
  [EXIT.refused]: "refused, or a check failed: not a dead letter, an unknown id, a fault found by doctor",
  [EXIT.usage]:
    "the command line is wrong, also if the relay refuses a value, or --yes is missing; nothing was changed",
  [EXIT.unavailable]:
    "the relay can't be reached, is unavailable, or sent an unexpected answer; or standard output can't be written",
  [EXIT.denied]:
    "not allowed: the token is missing, wrong or has another role, or too many refused ones came from this address",
  [EXIT.interrupted]: "interrupted (Ctrl-C)",
} as const satisfies Record<ExitCode, string>;

/** The command line is wrong. The message says what to write instead. */
export class UsageError extends Error {
  override readonly name = "UsageError";
}

/** Why a call gave no result. `message` is for people and says what to do. */
export interface Failure {
  readonly kind: "refused" | "denied" | "unavailable" | "unexpected" | "interrupted";
  readonly message: string;
  /** True if the gateway refused a value of the command line. It counts like one that the command refuses itself. */
  readonly isWrongValue?: boolean;
  /** The body of the API's error answer. Absent if the API sent none. */
  readonly text?: string;
  /** What to say because the gateway may have made the change nevertheless. Absent if it hasn't, or if no change was asked for. */
  readonly doubt?: string | undefined;
  /** The time in ms after which the gateway wants to be called again. Absent if it is unavailable without saying so. */
  readonly retryAfterMs?: number | undefined;
}

const EXIT_OF_FAILURE = {
  refused: EXIT.refused,
  denied: EXIT.denied,
  unavailable: EXIT.unavailable,
  unexpected: EXIT.unavailable,
  interrupted: EXIT.interrupted,
} as const satisfies Record<Failure["kind"], ExitCode>;

export function exitOf({ kind, isWrongValue }: Failure): ExitCode {
  return isWrongValue === true ? EXIT.usage : EXIT_OF_FAILURE[kind];
}

/** An answer before it is parsed, and the address that sent it. */
export interface RawAnswer {
  readonly status: number;
  readonly text: string;
  /** What its Retry-After says, in ms; absent if it has none. */
  readonly retryAfterMs?: number | undefined;
  readonly url: string;
  /** How to call the command, for hints. */
  readonly calledAs: string;
  /** Undefined if the call asked for no change. */
  readonly change: RequestedChange | undefined;
}

/** A change that a call asks for. */
export interface RequestedChange {
  /** The command that shows whether the change was made, such as `replays list`. */
  readonly look: string;
}

/**
 * What to say of a change whose result isn't known. The gateway answers 503 also if Redis gave no answer in time, and then
 * Redis may have made the change.
 */
export function describeDoubt({ look }: RequestedChange, calledAs: string): string {
  return `The gateway may have made the change: check before you repeat it, with \`${calledAs} ${look}\`.`;
}

/** Explains an answer whose status is not 2xx. `problem` is its body, if that has the form of a problem. */
export function explainRefusal(
  { status, text, retryAfterMs, url, calledAs, change }: RawAnswer,
  problem: Problem | undefined,
): Failure {
  const body = problem === undefined ? {} : { text: text.trim() };
  const atAccess = explainAccess(status, url, problem);
  if (atAccess !== undefined) {
    return { ...atAccess, ...body };
  }
  const doubt = status >= 500 && change !== undefined ? describeDoubt(change, calledAs) : undefined;
  if (problem === undefined) {
    const message = `${url} answered ${status}, but not in the form of the admin API. Is it a gateway's ops listener?`;
    return { kind: "unexpected", message: joinSentences(message, doubt), doubt };
  }
  if (problem.code === "not_found") {
    const message = `${url} has no such admin call. Either it is not a gateway's ops listener, or the gateway has no ADMIN_TOKEN, or it has another version than this command.`;
    return { kind: "unavailable", message, ...body };
  }
  const faults = (problem.errors ?? []).map(({ path, message }) => `${path}: ${message}`);
  const message = [problem.title, problem.detail, ...faults].filter((part) => part !== undefined).join(". ");
  return status >= 500
    ? {
        kind: "unavailable",
        message: `${message}. ${doubt ?? "Try again."} \`${calledAs} doctor\` looks for the cause.`,
        doubt,
        retryAfterMs,
        ...body,
      }
    : { kind: "refused", message, isWrongValue: problem.code === "validation_failed", ...body };
}

/** The gateway refused the operator, the operator's address, or the name that it was called by. */
function explainAccess(status: number, url: string, problem: Problem | undefined): Failure | undefined {
  const detail = problem?.detail ?? problem?.title ?? "";
  switch (problem?.code) {
    case "forbidden":
      return { kind: "denied", message: `Your token doesn't allow this: ${detail}.` };
    case "too_many_logins":
      return {
        kind: "denied",
        message: `${url} looks at no token from your address now: ${detail}. A wrong token in a script on your side may be the cause. Wait, or call from another address.`,
      };
    case "host_not_allowed":
      return {
        kind: "unavailable",
        message: `${url} doesn't serve this host name. Call it by its IP address or as localhost, or add the name to the gateway's OPS_HOSTS.`,
      };
    default:
      return status === 401 || status === 403
        ? {
            kind: "denied",
            message: `${url} refused this token. Set ADRELAY_ADMIN_TOKEN to the gateway's ADMIN_TOKEN, or to your own token from its ADMIN_TOKENS or OPERATORS_FILE. It may have expired.`,
          }
        : undefined;
  }
}

export function joinSentences(...sentences: readonly (string | undefined)[]): string {
  return sentences.filter((sentence) => sentence !== undefined).join(" ");
}

/** A call that got no answer. */
export interface UnansweredCall {
  readonly url: string;
  readonly timeoutMs: number;
  readonly isInterrupted: boolean;
  /** How to call the command, for hints. */
  readonly calledAs: string;
  /** Undefined if the call asked for no change. */
  readonly change: RequestedChange | undefined;
}

/** Explains why there was no answer, and says if the gateway may have made the change nevertheless. */
export function explainSilence(error: unknown, { url, timeoutMs, ...call }: UnansweredCall): Failure {
  const code = codeOf(error);
  const { change, calledAs } = call;
  const doubt = change === undefined || NEVER_SENT.has(code) ? undefined : describeDoubt(change, calledAs);
  if (call.isInterrupted) {
    return { kind: "interrupted", message: joinSentences("Interrupted.", doubt), doubt };
  }
  const isLate = error instanceof Error && error.name === "TimeoutError";
  const why = isLate ? `within ${timeoutMs} ms` : `(${code})`;
  const hint = "Is this the gateway's ops listener? Set the address with --url or ADRELAY_URL.";
  const message = joinSentences(`No answer from ${url} ${why}.`, doubt, hint);
  return { kind: "unavailable", message, doubt };
}

/** The system's error code, which `fetch` puts in the cause. */
export function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? String(("code" in cause && cause.code) || cause.message) : "unknown fault";
}

/** Error codes of a connection that was never made. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

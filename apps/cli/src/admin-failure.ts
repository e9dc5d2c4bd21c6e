/** Why a call of the admin API came to nothing, in words that say what to do. */
import type { Problem } from "@adrelay/contract";
import { EXIT, type ExitCode } from "./exit-codes.ts";

/** Why there is no result; `message` is for people and says what to do. */
export interface Failure {
  readonly kind: "refused" | "denied" | "unavailable" | "nonsense" | "interrupted";
  readonly message: string;
  /** The API's own answer, if it gave one. */
  readonly text?: string;
}

const EXIT_OF_FAILURE = {
  refused: EXIT.refused,
  denied: EXIT.denied,
  unavailable: EXIT.unavailable,
  nonsense: EXIT.unavailable,
  interrupted: EXIT.interrupted,
} as const satisfies Record<Failure["kind"], ExitCode>;

export function exitOf({ kind }: Failure): ExitCode {
  return EXIT_OF_FAILURE[kind];
}

/** An answer as it came, and whose. */
export interface RawAnswer {
  readonly status: number;
  readonly text: string;
  readonly url: string;
  readonly calledAs: string;
}

/** What an answer that is no success means. */
export function explainRefusal(
  { status, text, url, calledAs }: RawAnswer,
  problem: Problem | undefined,
): Failure {
  const said = problem === undefined ? {} : { text: text.trim() };
  if (status === 401 || status === 403) {
    const message = `${url} does not take this token. Set ADRELAY_ADMIN_TOKEN to the gateway's ADMIN_TOKEN, or to your own of its ADMIN_TOKENS.`;
    return { kind: "denied", message, ...said };
  }
  if (problem === undefined) {
    const message = `${url} answered ${status}, not as the admin API does. Is it a gateway's ops listener?`;
    return { kind: "nonsense", message };
  }
  if (problem.code === "not_found") {
    const message = `${url} has no such admin call: it is no gateway's ops listener, or that has no ADMIN_TOKEN set, or is of another version.`;
    return { kind: "unavailable", message, ...said };
  }
  const faults = (problem.errors ?? []).map(({ path, message }) => `${path}: ${message}`);
  const message = [problem.title, problem.detail, ...faults].filter((part) => part !== undefined).join(". ");
  return status >= 500
    ? {
        kind: "unavailable",
        message: `${message}. Try again; \`${calledAs} doctor\` looks for the cause.`,
        ...said,
      }
    : { kind: "refused", message, ...said };
}

/** A call that got no answer. */
export interface SilentCall {
  readonly url: string;
  readonly timeoutMs: number;
  readonly isInterrupted: boolean;
  readonly isChange: boolean;
}

/** Why there was no answer, and whether a change may have been made. */
export function explainSilence(error: unknown, { url, timeoutMs, ...call }: SilentCall): Failure {
  const code = codeOf(error);
  const isInDoubt = call.isChange && !NEVER_SENT.has(code);
  const doubt = isInDoubt ? " It may have been done all the same: look before you repeat it." : "";
  if (call.isInterrupted) {
    return { kind: "interrupted", message: `Interrupted.${doubt}` };
  }
  const isLate = error instanceof Error && error.name === "TimeoutError";
  const why = isLate ? `within ${timeoutMs} ms` : `(${code})`;
  return {
    kind: "unavailable",
    message: `No answer from ${url} ${why}.${doubt} Is that the gateway's ops listener? --url or ADRELAY_URL names it.`,
  };
}

/** The system's name of a fault, which `fetch` hides in the cause. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error ? String(("code" in cause && cause.code) || cause.message) : "unknown fault";
}

/** Faults of a connection that never came about. */
const NEVER_SENT: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
]);

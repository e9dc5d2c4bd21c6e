/**
 * Calls the admin API. Each call is bounded as a whole, sends the token to the one address it was given for
 * (redirects are not followed), and believes an answer only if it has the form that was agreed.
 */
import {
  ADMIN_PATH,
  type Problem,
  problemSchema,
  READINESS_PATH,
  type Readiness,
  readinessSchema,
} from "@adrelay/contract";
import type { z } from "zod";
import { EXIT, type ExitCode } from "./exit-codes.ts";

/** Why there is no result; `message` is for people and says what to do. */
export interface Failure {
  readonly kind: "refused" | "denied" | "unavailable" | "nonsense" | "interrupted";
  readonly message: string;
  /** The API's own answer, if it gave one. */
  readonly text?: string;
}

export type Answer<T> =
  | { readonly kind: "ok"; readonly value: T /** The answer as it came. */; readonly text: string }
  | { readonly kind: "failed"; readonly failure: Failure };

export interface AdminClientOptions {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
  /** Ends what runs when the operator wants to leave. */
  readonly signal: AbortSignal;
}

/** One call; a body makes it a POST. */
export interface AdminCall<T> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: Readonly<Record<string, unknown>>;
  readonly schema: z.ZodType<T>;
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

export class AdminClient {
  readonly #options: AdminClientOptions;

  constructor(options: AdminClientOptions) {
    this.#options = options;
  }

  async call<T>(call: AdminCall<T>): Promise<Answer<T>> {
    const { url, token, timeoutMs, signal } = this.#options;
    try {
      const response = await fetch(addressOf(url, call), {
        method: call.body === undefined ? "GET" : "POST",
        headers: {
          Accept: "application/json",
          Authorization: `Bearer ${token}`,
          ...(call.body === undefined ? {} : { "Content-Type": "application/json" }),
        },
        ...(call.body === undefined ? {} : { body: JSON.stringify(call.body) }),
        redirect: "manual",
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), signal]),
      });
      return readAnswer({ status: response.status, text: await response.text(), url }, call.schema);
    } catch (error) {
      return failed(this.#explain(error, call.body !== undefined));
    }
  }

  /** Whether the gateway can do its work, whatever the status of its answer; undefined if it doesn't tell. */
  async readiness(): Promise<Readiness | undefined> {
    const { url, timeoutMs, signal } = this.#options;
    try {
      const response = await fetch(baseOf(url) + READINESS_PATH, {
        redirect: "manual",
        signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), signal]),
      });
      return readinessSchema.safeParse(parseJson(await response.text())).data;
    } catch {
      return undefined;
    }
  }

  #explain(error: unknown, isChange: boolean): Failure {
    const { url, timeoutMs, signal } = this.#options;
    const doubt = isChange ? " It may have been done all the same: look before you repeat it." : "";
    if (signal.aborted) {
      return { kind: "interrupted", message: `Interrupted.${doubt}` };
    }
    const isLate = error instanceof Error && error.name === "TimeoutError";
    const why = isLate ? `within ${timeoutMs} ms` : `(${codeOf(error)})`;
    return {
      kind: "unavailable",
      message: `No answer from ${url} ${why}.${doubt} Is that the gateway's ops listener? --url or ADRELAY_URL names it.`,
    };
  }
}

function addressOf<T>(base: string, { path, query = {} }: AdminCall<T>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = new URLSearchParams(given).toString();
  return `${baseOf(base)}${ADMIN_PATH}${path}${search === "" ? "" : `?${search}`}`;
}

function baseOf(url: string): string {
  return url.replace(/\/+$/, "");
}

interface RawAnswer {
  readonly status: number;
  readonly text: string;
  readonly url: string;
}

function readAnswer<T>(raw: RawAnswer, schema: z.ZodType<T>): Answer<T> {
  const json = parseJson(raw.text);
  if (raw.status < 200 || raw.status > 299) {
    return failed(failureOf(raw, problemSchema.safeParse(json).data));
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) {
    return { kind: "ok", value: parsed.data, text: raw.text.trim() };
  }
  const where = parsed.error.issues[0]?.path.join(".") || "the whole";
  return failed({
    kind: "nonsense",
    message: `${raw.url} answered something else than was agreed (${where}). Is it a gateway's ops listener, of this version?`,
  });
}

function failureOf({ status, text, url }: RawAnswer, problem: Problem | undefined): Failure {
  const said = problem === undefined ? {} : { text: text.trim() };
  if (status === 401 || status === 403) {
    const message = `${url} does not take this token. Set ADRELAY_ADMIN_TOKEN to the gateway's ADMIN_TOKEN.`;
    return { kind: "denied", message, ...said };
  }
  if (problem === undefined) {
    const message = `${url} answered ${status}, not as the admin API does. Is it a gateway's ops listener?`;
    return { kind: "nonsense", message };
  }
  if (problem.code === "not_found") {
    const message = `${url} has no such admin call: its ADMIN_TOKEN is not set, or it is of another version.`;
    return { kind: "unavailable", message, ...said };
  }
  const faults = (problem.errors ?? []).map(({ path, message }) => `${path}: ${message}`);
  const message = [problem.title, problem.detail, ...faults].filter((part) => part !== undefined).join(". ");
  return status >= 500
    ? {
        kind: "unavailable",
        message: `${message}. Try again; \`adrelay doctor\` looks for the cause.`,
        ...said,
      }
    : { kind: "refused", message, ...said };
}

function failed(failure: Failure): { readonly kind: "failed"; readonly failure: Failure } {
  return { kind: "failed", failure };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The system's name of a fault, which `fetch` hides in the cause. */
function codeOf(error: unknown): string {
  const cause = error instanceof Error ? (error.cause ?? error) : error;
  return cause instanceof Error && "code" in cause ? String(cause.code) : "the connection broke";
}

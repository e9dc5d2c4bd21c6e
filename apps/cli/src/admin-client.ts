/**
 * Calls the admin API. Each call has one timeout for the whole of it. The token goes only to the configured address:
 * redirects are not followed. An answer counts only if it has the form that the contract defines.
 */
import {
  ADMIN_PATH,
  problemSchema,
  READINESS_PATH,
  type Readiness,
  readinessSchema,
} from "@adrelay/contract";
import type { z } from "zod";
import {
  describeDoubt,
  explainRefusal,
  explainSilence,
  type Failure,
  joinSentences,
  type RawAnswer,
  type RequestedChange,
} from "./exit-codes.ts";

/** `text` is the answer's body, unchanged. */
export type Answer<T> =
  | { readonly kind: "ok"; readonly value: T; readonly text: string }
  | { readonly kind: "failed"; readonly failure: Failure };

export interface AdminClientOptions {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
  /** How to call the command, for hints. */
  readonly calledAs: string;
  /** Aborts the running call when the operator interrupts the command. */
  readonly signal: AbortSignal;
  /** Called before each call that asks for a change. */
  readonly onChange: (() => void) | undefined;
}

/** One call. It is a POST if it has a body, else a GET. */
export interface AdminCall<T> {
  readonly path: string;
  readonly query?: Readonly<Record<string, string | undefined>>;
  readonly body?: Readonly<Record<string, unknown>>;
  /** Undefined if it asks for no change. A dry run doesn't. */
  readonly change?: RequestedChange;
  readonly schema: z.ZodType<T>;
}

/** The path of one acknowledgment, by its ad_response_id. */
export function acknowledgmentPath(id: string): string {
  return `/acknowledgments/${encodeURIComponent(id)}`;
}

export class AdminClient {
  readonly #options: AdminClientOptions;
  #hasAnswered = false;

  constructor(options: AdminClientOptions) {
    this.#options = options;
  }

  /** Whether the gateway has carried out or refused a call before. Then the address and the token are right. */
  get hasAnswered(): boolean {
    return this.#hasAnswered;
  }

  async call<T>(call: AdminCall<T>): Promise<Answer<T>> {
    const { url, token, timeoutMs, signal, calledAs, onChange } = this.#options;
    const { change } = call;
    if (change !== undefined) {
      onChange?.();
    }
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
      const text = await response.text();
      const retryAfterMs = readRetryAfter(response.headers);
      const raw = { status: response.status, text, retryAfterMs, url, calledAs, change };
      const answer = readAnswer(raw, call.schema);
      this.#hasAnswered ||= answer.kind === "ok" || answer.failure.kind === "refused";
      return answer;
    } catch (error) {
      return failed(
        explainSilence(error, { url, timeoutMs, isInterrupted: signal.aborted, calledAs, change }),
      );
    }
  }

  /** The gateway's readiness, whether its HTTP status is 200 or 503; undefined if there is no usable answer. */
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
}

function addressOf<T>(base: string, { path, query = {} }: AdminCall<T>): string {
  const given = Object.entries(query).filter((entry): entry is [string, string] => entry[1] !== undefined);
  const search = new URLSearchParams(given).toString();
  return `${baseOf(base)}${ADMIN_PATH}${path}${search === "" ? "" : `?${search}`}`;
}

function baseOf(url: string): string {
  return url.replace(/\/+$/, "");
}

function readAnswer<T>(raw: RawAnswer, schema: z.ZodType<T>): Answer<T> {
  const json = parseJson(raw.text);
  if (raw.status < 200 || raw.status > 299) {
    return failed(explainRefusal(raw, problemSchema.safeParse(json).data));
  }
  const parsed = schema.safeParse(json);
  if (parsed.success) {
    return { kind: "ok", value: parsed.data, text: raw.text.trim() };
  }
  const where = parsed.error.issues[0]?.path.join(".") || "the whole body";
  const message = `${raw.url} sent an unexpected answer (fault in: ${where}). Is it a gateway's ops listener, and does its version match this command?`;
  const doubt = raw.change === undefined ? undefined : describeDoubt(raw.change, raw.calledAs);
  return failed({ kind: "unexpected", message: joinSentences(message, doubt), doubt });
}

/** The gateway sends whole seconds. The header's other form, a date, is for nobody. */
function readRetryAfter(headers: Headers): number | undefined {
  const text = headers.get("Retry-After") ?? "";
  return /^\d{1,6}$/.test(text) ? Number(text) * 1000 : undefined;
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

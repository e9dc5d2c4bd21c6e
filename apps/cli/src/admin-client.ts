/**
 * Calls the admin API. Each call is bounded as a whole, sends the token to the one address it was given for
 * (redirects are not followed), and believes an answer only if it has the form that was agreed.
 */
import {
  ADMIN_PATH,
  problemSchema,
  READINESS_PATH,
  type Readiness,
  readinessSchema,
} from "@adrelay/contract";
import type { z } from "zod";
import { explainRefusal, explainSilence, type Failure, type RawAnswer } from "./admin-failure.ts";

export type Answer<T> =
  | { readonly kind: "ok"; readonly value: T /** The answer as it came. */; readonly text: string }
  | { readonly kind: "failed"; readonly failure: Failure };

export interface AdminClientOptions {
  readonly url: string;
  readonly token: string;
  readonly timeoutMs: number;
  /** How to call the command, for hints. */
  readonly calledAs: string;
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

export class AdminClient {
  readonly #options: AdminClientOptions;

  constructor(options: AdminClientOptions) {
    this.#options = options;
  }

  async call<T>(call: AdminCall<T>): Promise<Answer<T>> {
    const { url, token, timeoutMs, signal, calledAs } = this.#options;
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
      return readAnswer({ status: response.status, text, url, calledAs }, call.schema);
    } catch (error) {
      return failed(
        explainSilence(error, { url, timeoutMs, isInterrupted: signal.aborted, isChange: isChange(call) }),
      );
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
  const where = parsed.error.issues[0]?.path.join(".") || "the whole";
  return failed({
    kind: "nonsense",
    message: `${raw.url} answered something else than was agreed (${where}). Is it a gateway's ops listener, of this version?`,
  });
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

/** A dry run only counts. */
function isChange<T>({ body }: AdminCall<T>): boolean {
  return body !== undefined && body["dry_run"] !== true;
}

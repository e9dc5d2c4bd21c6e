/** One POST to the relay. It never rejects: what can go wrong is in the reply. */

import { type ProblemCode, RelayError, RelayProblemError } from "./errors.ts";
import { tryCall } from "./try-call.ts";
import { membersOf } from "./wire.ts";

/** Where the relay is, and how it is called. */
export interface Connection {
  /** Without a slash at its end. */
  readonly url: string;
  readonly apiKey: string;
  readonly apiKeyHeader: string;
  readonly fetch: typeof fetch;
}

export interface Message {
  readonly path: string;
  readonly body: string;
  readonly headers: Readonly<Record<string, string>>;
}

export type Reply =
  /** `body` is undefined if it is no JSON. */
  | { readonly kind: "answer"; readonly status: number; readonly headers: Headers; readonly body: unknown }
  | { readonly kind: "failed"; readonly error: RelayError };

export interface RunningPost {
  readonly reply: Promise<Reply>;
  /** Gives the call up. The reply then comes soon, if the runtime heeds its signals. */
  abort(): void;
}

/** No answer of the relay comes near it. An enhanced prompt is little longer than its prompt, which has 1 MiB at most. */
const ANSWER_BYTES_MAX = 8 * 1024 * 1024;

export function startPost(connection: Connection, message: Message): RunningPost {
  const controller = new AbortController();
  const reply = exchange(connection, message, controller.signal).catch((cause: unknown): Reply => {
    return { kind: "failed", error: new RelayError("unreachable", "the relay gave no answer", { cause }) };
  });
  return { reply, abort: () => controller.abort() };
}

async function exchange(
  { url, apiKey, apiKeyHeader, fetch }: Connection,
  { path, body, headers }: Message,
  signal: AbortSignal,
): Promise<Reply> {
  const response = await fetch(url + path, {
    method: "POST",
    headers: { ...headers, "Content-Type": "application/json", [apiKeyHeader]: apiKey },
    body,
    signal,
    // A redirect would take the key and the text to another place.
    redirect: "manual",
  });
  const text = await readText(response);
  return {
    kind: "answer",
    status: response.status,
    headers: response.headers,
    body: tryCall(() => JSON.parse(text)),
  };
}

/** The body as text; empty if it is longer than any answer of the relay. */
async function readText(response: Response): Promise<string> {
  const reader = response.body?.getReader();
  const decoder = new TextDecoder();
  let text = "";
  let bytes = 0;
  while (reader !== undefined) {
    const { done, value } = await reader.read();
    if (done) {
      break;
    }
    bytes += value.byteLength;
    if (bytes > ANSWER_BYTES_MAX) {
      await reader.cancel();
      return "";
    }
    text += decoder.decode(value, { stream: true });
  }
  return text + decoder.decode();
}

/** The error that an answer other than a good one means. Only a body in the relay's own form is a problem of the relay. */
export function errorOf({ status, body }: Extract<Reply, { kind: "answer" }>): RelayError {
  const { type, code, title, detail, request_id: requestId, errors } = membersOf(body);
  if (typeof code !== "string" || type !== `urn:adrelay:error:${code}`) {
    return new RelayError("unexpected_answer", `the answer ${status} is not one of the relay`, { status });
  }
  const faults = (Array.isArray(errors) ? errors : []).map((fault) => {
    const { path, message } = membersOf(fault);
    return { path: String(path), message: String(message) };
  });
  const message = [title, detail, ...faults.map(({ path, message }) => `${path}: ${message}`)]
    .filter((part) => part !== undefined)
    .join("; ");
  return new RelayProblemError({
    // The relay's catalogue has it, be that one newer than this type.
    code: code as ProblemCode,
    status,
    message,
    requestId: String(requestId),
    faults,
  });
}

const RETRY_AFTER_MAX_MS = 3_600_000;

/** How long an answer asks to be left alone, at most an hour: Retry-After has seconds or a date (RFC 9110, 10.2.3). */
export function retryAfterMs(headers: Headers, nowMs: number): number {
  const value = headers.get("retry-after")?.trim() ?? "";
  const waitMs = /^\d+$/.test(value) ? Number(value) * 1000 : Date.parse(value) - nowMs;
  // What is neither counts as none: it is NaN.
  return Math.min(Math.max(waitMs || 0, 0), RETRY_AFTER_MAX_MS);
}

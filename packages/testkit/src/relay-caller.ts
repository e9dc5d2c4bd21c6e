import { randomUUID } from "node:crypto";
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { eventually } from "./inspection.ts";
import { TEST_API_KEY } from "./relay-stack.ts";

export interface Answer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  /** The body's fields; empty if it is no JSON object. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly durationMs: number;
}

/** No injection had an ad. The message is the last answer. */
class NotFilledError extends Error {
  override readonly name = "NotFilledError";
}

/** An acknowledgment was never accepted. The message is the last answer. */
class NotAcceptedError extends Error {
  override readonly name = "NotAcceptedError";
}

export interface SendOptions {
  readonly method?: string;
  /** null removes a header. */
  readonly headers?: Readonly<Record<string, string | null>>;
  readonly signal?: AbortSignal;
}

/** Sends requests like a publisher's backend. */
export interface RelayCaller {
  send(path: string, body: string | Buffer | undefined, options?: SendOptions): Promise<Answer>;
  inject(options?: SendOptions, body?: unknown): Promise<Answer>;
  /** Repeats the injection until it has an ad: on a loaded machine it may become a fallback. Returns the ad's id. */
  injectUntilFilled(options?: SendOptions, body?: unknown): Promise<string>;
  acknowledge(adResponseId: unknown, text: unknown, options?: SendOptions): Promise<Answer>;
  /** Repeats the acknowledgment after each 503, which Redis on a loaded machine may cause. */
  acknowledgeUntilAccepted(adResponseId: unknown, text: unknown, options?: SendOptions): Promise<Answer>;
  lookUp(adResponseId: string, options?: SendOptions): Promise<Answer>;
}

export const TEST_INJECTION = {
  prompt: "Which running shoes should I buy for my first marathon?",
  request_context: { session_id: "s-1", user_agent: "test", user_ip: "203.0.113.7" },
  optional_context: { country: "US", age: 34 },
};

/** @param apiKey a key, or what returns the key of each call */
export function relayCaller(baseUrl: string, apiKey: string | (() => string) = TEST_API_KEY): RelayCaller {
  const keyNow = typeof apiKey === "string" ? () => apiKey : apiKey;
  const send: RelayCaller["send"] = async (path, body, { method, headers = {}, signal } = {}) => {
    const wanted = { [API_KEY_HEADER]: keyNow(), "Content-Type": "application/json", ...headers };
    const kept = Object.entries(wanted).filter((entry): entry is [string, string] => entry[1] !== null);
    const startedAtMs = performance.now();
    const response = await fetch(baseUrl + path, {
      method: method ?? (body === undefined ? "GET" : "POST"),
      headers: kept,
      ...(body === undefined ? {} : { body: typeof body === "string" ? body : new Uint8Array(body) }),
      ...(signal === undefined ? {} : { signal }),
    });
    const text = await response.text();
    const durationMs = performance.now() - startedAtMs;
    return { status: response.status, headers: response.headers, text, body: fieldsOf(text), durationMs };
  };
  const acknowledge: RelayCaller["acknowledge"] = (id, text, options) =>
    send(ACKNOWLEDGE_PATH, JSON.stringify({ ad_response_id: id, llm_response: text }), options);
  const inject: RelayCaller["inject"] = (options, body = TEST_INJECTION) =>
    send(INJECTION_PATH, JSON.stringify(body), options);
  return {
    send,
    inject,
    injectUntilFilled: (options, body) =>
      eventually(async () => {
        const answer = await inject(options, body);
        if (answer.status !== 200) {
          throw new NotFilledError(answer.text);
        }
        return String(answer.body["ad_response_id"]);
      }),
    acknowledge,
    acknowledgeUntilAccepted: (id, text, options) =>
      eventually(async () => {
        const answer = await acknowledge(id, text, options);
        if (answer.status === 503) {
          throw new NotAcceptedError(answer.text);
        }
        return answer;
      }),
    lookUp: (id, options) => send(`${ACKNOWLEDGMENTS_PATH}${id}/`, undefined, options),
  };
}

/** A new id that no provider has issued. */
export function unknownId(): string {
  return randomUUID();
}

function fieldsOf(text: string): Record<string, unknown> {
  try {
    const value: unknown = JSON.parse(text);
    return typeof value === "object" && value !== null && !Array.isArray(value) ? { ...value } : {};
  } catch {
    return {};
  }
}

/** Calls a provider as the relay does: same paths, same headers, and one time limit for the whole call. */
import {
  ACKNOWLEDGE_PATH,
  API_KEY_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  INJECTION_PATH,
  REQUEST_ID_HEADER,
} from "@adrelay/contract";
import { type ProviderReply, parseReply } from "@adrelay/core";

/** The provider that is tried, and how. */
export interface ProviderTarget {
  readonly url: string;
  readonly key: string;
  /** Name of the header with the key; default: X-Service-API-Key. */
  readonly keyHeader: string | undefined;
  readonly timeoutMs: number;
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** A reply, and how long it took. */
export interface TimedReply {
  readonly reply: ProviderReply;
  readonly durationMs: number;
}

export function postInjection(target: ProviderTarget, body: object): Promise<TimedReply> {
  return post(target, INJECTION_PATH, body, {});
}

export function postAcknowledgment(
  target: ProviderTarget,
  { id, ackId, text }: { readonly id: string; readonly ackId: string; readonly text: string },
): Promise<TimedReply> {
  const body = { ad_response_id: id, llm_response: text };
  return post(target, ACKNOWLEDGE_PATH, body, { [IDEMPOTENCY_KEY_HEADER]: ackId });
}

async function post(
  { url, key, keyHeader = API_KEY_HEADER, timeoutMs, signal }: ProviderTarget,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>>,
): Promise<TimedReply> {
  const startedAtMs = performance.now();
  const timed = (reply: ProviderReply) => ({ reply, durationMs: performance.now() - startedAtMs });
  try {
    const response = await fetch(url.replace(/\/+$/, "") + path, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "adrelay",
        [REQUEST_ID_HEADER]: crypto.randomUUID(),
        [keyHeader]: key,
        ...headers,
      },
      body: JSON.stringify(body),
      redirect: "manual",
      signal: AbortSignal.any([AbortSignal.timeout(timeoutMs), signal]),
    });
    const text = await response.text();
    return timed({
      kind: "answered",
      status: response.status,
      body: parseReply(text, response.headers.get("content-type") ?? undefined),
      retryAfter: response.headers.get("retry-after") ?? undefined,
    });
  } catch (error) {
    return timed(failureOf(error));
  }
}

/** Codes of a connection that was never made. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function failureOf(error: unknown): ProviderReply {
  if (error instanceof Error && error.name === "TimeoutError") {
    return { kind: "failed", stage: "after_send", code: "timeout" };
  }
  const cause = error instanceof Error ? error.cause : undefined;
  const isUnreachable = cause instanceof Error && "code" in cause && UNREACHABLE.has(String(cause.code));
  return isUnreachable
    ? { kind: "failed", stage: "before_send", code: "unreachable" }
    : { kind: "failed", stage: "after_send", code: "connection_lost" };
}

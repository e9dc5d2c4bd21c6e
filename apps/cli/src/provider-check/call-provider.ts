/** Calls a provider as the relay does: same paths, same headers, and one time limit for the whole call. */
import {
  ACKNOWLEDGE_PATH,
  API_KEY_HEADER,
  IDEMPOTENCY_KEY_HEADER,
  INJECTION_PATH,
  REQUEST_ID_HEADER,
} from "@adrelay/contract";
import type { CallFailure, ProviderReply } from "@adrelay/core";

/** The provider that is tried, and how. */
export interface ProviderTarget {
  readonly url: string;
  readonly key: string;
  /** Name of the header with the key; default: X-Service-API-Key. */
  readonly keyHeader: string | undefined;
  /** How long the check waits for one answer. */
  readonly waitMs: number;
  /** How long the relay waits for the answer to an injection, and to an acknowledgment. */
  readonly injectionTimeoutMs: number;
  readonly deliveryTimeoutMs: number;
  /** Fires at Ctrl-C. */
  readonly signal: AbortSignal;
}

/** A reply, how long it took, and how long it may take. */
export interface TimedReply {
  readonly reply: ProviderReply;
  readonly durationMs: number;
  readonly limitMs: number;
}

export async function postInjection(target: ProviderTarget, body: object): Promise<TimedReply> {
  const timed = await post(target, INJECTION_PATH, body, {});
  return { ...timed, limitMs: target.injectionTimeoutMs };
}

export async function postAcknowledgment(
  target: ProviderTarget,
  { id, ackId, text }: { readonly id: string; readonly ackId: string; readonly text: string },
): Promise<TimedReply> {
  const body = { ad_response_id: id, llm_response: text };
  const timed = await post(target, ACKNOWLEDGE_PATH, body, { [IDEMPOTENCY_KEY_HEADER]: ackId });
  return { ...timed, limitMs: target.deliveryTimeoutMs };
}

async function post(
  { url, key, keyHeader = API_KEY_HEADER, waitMs, signal }: ProviderTarget,
  path: string,
  body: object,
  headers: Readonly<Record<string, string>>,
): Promise<Omit<TimedReply, "limitMs">> {
  const startedAtMs = performance.now();
  const timed = (reply: ProviderReply) => ({ reply, durationMs: performance.now() - startedAtMs });
  try {
    const response = await fetch(addressOf(url, path), {
      method: "POST",
      headers: {
        "content-type": "application/json",
        "user-agent": "adrelay",
        // The relay doesn't ask for compression. fetch would.
        "accept-encoding": "identity",
        [REQUEST_ID_HEADER]: crypto.randomUUID(),
        [keyHeader]: key,
        ...basicAuthOf(url),
        ...headers,
      },
      body: JSON.stringify(body),
      redirect: "manual",
      signal: AbortSignal.any([AbortSignal.timeout(waitMs), signal]),
    });
    return timed(await readReply(response));
  } catch (error) {
    return timed(failureOf(error));
  }
}

function addressOf(url: string, path: string): string {
  const { origin, pathname } = new URL(url);
  return origin + pathname.replace(/\/+$/, "") + path;
}

/** User and password of the URL, as the relay sends them. */
function basicAuthOf(url: string): Record<string, string> {
  const { username, password } = new URL(url);
  const credentials = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
  return credentials === ":" ? {} : { authorization: `Basic ${Buffer.from(credentials).toString("base64")}` };
}

const JSON_TYPE = /^application\/([\w.+-]+\+)?json\b/i;

async function readReply(response: Response): Promise<ProviderReply> {
  const text = await response.text();
  const isEmptyJson = text === "" && JSON_TYPE.test(response.headers.get("content-type") ?? "");
  const body = isEmptyJson ? null : parseJson(text);
  return {
    kind: "answered",
    status: response.status,
    body,
    isPage: text !== "" && body === undefined,
    retryAfter: response.headers.get("retry-after") ?? undefined,
  };
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** Error codes of connections that were never made. All others may have reached the provider. */
const NEVER_SENT: readonly { readonly pattern: RegExp; readonly code: CallFailure }[] = [
  { code: "dns_failed", pattern: /^(ENOTFOUND|EAI_\w+)$/ },
  { code: "certificate_invalid", pattern: /CERT|^UNABLE_TO_/ },
  { code: "unreachable", pattern: /^(ECONNREFUSED|EHOSTUNREACH|ENETUNREACH|UND_ERR_CONNECT_TIMEOUT)$/ },
];

function failureOf(error: unknown): ProviderReply {
  if (error instanceof Error && error.name === "TimeoutError") {
    return { kind: "failed", stage: "after_send", code: "timeout" };
  }
  const reason = error instanceof Error ? error.cause : undefined;
  const cause = reason instanceof Error && "code" in reason ? String(reason.code) : undefined;
  const code = NEVER_SENT.find(({ pattern }) => pattern.test(cause ?? ""))?.code;
  return code === undefined
    ? { kind: "failed", stage: "after_send", code: "connection_lost", cause }
    : { kind: "failed", stage: "before_send", code, cause };
}

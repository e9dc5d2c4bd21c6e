/**
 * Calls the ad service. Every call is bounded as a whole, body included: a provider that sends one byte a
 * second can hold nothing up. Redirects are not followed.
 */
import {
  ACKNOWLEDGE_PATH,
  type AdAckId,
  IDEMPOTENCY_KEY_HEADER,
  INJECTION_PATH,
  REQUEST_ID_HEADER,
} from "@adrelay/contract";
import type { CallFailure, ProviderReply } from "@adrelay/core";
import { Agent, type Dispatcher, request } from "undici";
import type { ProviderAccount } from "./publishers.ts";

export interface ProviderCall {
  readonly account: ProviderAccount;
  /** Sent as it is. */
  readonly body: string | Buffer;
  readonly requestId: string;
  /** Pass the trace on, if there is one. */
  readonly traceHeaders?: Readonly<Record<string, string>>;
  /** Bound of the whole call, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Ends the call early. */
  readonly signal?: AbortSignal;
  /** Told when the request goes out: until then the provider can't have seen it. */
  readonly onSent?: () => void;
}

export interface AcknowledgeCall extends ProviderCall {
  readonly adAckId: AdAckId;
}

/** A reply with the bytes that it came in, to pass through. */
export interface RawReply {
  readonly reply: ProviderReply;
  readonly bytes: Buffer;
  readonly contentType: string | undefined;
}

const CONNECT_TIMEOUT_MS = 5000;
/** Shorter than what servers usually allow, so that a pooled connection isn't used as the server closes it. */
const KEEP_ALIVE_MS = 4000;
const INJECTION_ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const ACKNOWLEDGE_ANSWER_BYTES_MAX = 256 * 1024;

export class ProviderClient {
  readonly #agent = new Agent({
    // No limit here: a call that waited for a connection would go out after its caller was answered. Callers
    // bound how many calls run at once.
    connections: null,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Each call has a bound of its own for all of it.
    headersTimeout: 0,
    bodyTimeout: 0,
  });

  /** Asks for an ad; the answer's bytes are kept, to be passed through. */
  startInjection(call: ProviderCall): Promise<RawReply> {
    return this.#post(INJECTION_PATH, call, INJECTION_ANSWER_BYTES_MAX, {});
  }

  /** Delivers an acknowledgment. Each attempt carries the same idempotency key (invariant 4). */
  async acknowledge(call: AcknowledgeCall): Promise<ProviderReply> {
    const headers = { [IDEMPOTENCY_KEY_HEADER]: call.adAckId };
    const { reply } = await this.#post(ACKNOWLEDGE_PATH, call, ACKNOWLEDGE_ANSWER_BYTES_MAX, headers);
    return reply;
  }

  /** Cuts what still runs and closes all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  async #post(
    path: string,
    call: ProviderCall,
    bytesMax: number,
    headers: Record<string, string>,
  ): Promise<RawReply> {
    const timeout = AbortSignal.timeout(call.timeoutMs);
    const signal = call.signal === undefined ? timeout : AbortSignal.any([timeout, call.signal]);
    let wasSent = false;
    const dispatcher = watchSending(this.#agent, () => {
      wasSent = true;
      call.onSent?.();
    });
    try {
      const response = await request(joinUrl(call.account.url, path), {
        dispatcher,
        method: "POST",
        body: call.body,
        signal,
        headers: {
          "content-type": "application/json",
          "user-agent": "adrelay",
          [call.account.apiKeyHeader]: call.account.apiKey,
          [REQUEST_ID_HEADER]: call.requestId,
          ...call.traceHeaders,
          ...headers,
        },
      });
      return await readReply(response, bytesMax);
    } catch (error) {
      const code = failureOf(error, timeout.aborted);
      const stage = wasSent ? "after_send" : "before_send";
      return { reply: { kind: "failed", stage, code }, bytes: Buffer.alloc(0), contentType: undefined };
    }
  }
}

/** Raised in here alone, to leave the reading of a body that is too long. */
class AnswerTooLargeError extends Error {
  override readonly name = "AnswerTooLargeError";
}

async function readReply(response: Dispatcher.ResponseData, bytesMax: number): Promise<RawReply> {
  const chunks: Buffer[] = [];
  let length = 0;
  for await (const chunk of response.body) {
    const bytes = Buffer.from(chunk);
    length += bytes.length;
    if (length > bytesMax) {
      throw new AnswerTooLargeError();
    }
    chunks.push(bytes);
  }
  const bytes = Buffer.concat(chunks);
  return {
    reply: {
      kind: "answered",
      status: response.statusCode,
      body: parseJson(bytes),
      retryAfter: firstValue(response.headers["retry-after"]),
    },
    bytes,
    contentType: firstValue(response.headers["content-type"]),
  };
}

function parseJson(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString("utf8"));
  } catch {
    return undefined;
  }
}

function firstValue(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** The base may have a path of its own; the operation's path comes below it. */
function joinUrl(base: string, path: string): string {
  return base.replace(/\/+$/, "") + path;
}

/** Faults of connecting. */
const UNREACHABLE = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function failureOf(error: unknown, isTimeout: boolean): CallFailure {
  const code = error instanceof Error && "code" in error ? String(error.code) : "";
  if (UNREACHABLE.has(code)) {
    return "unreachable";
  }
  if (error instanceof AnswerTooLargeError) {
    return "answer_too_large";
  }
  return isTimeout ? "timeout" : "connection_lost";
}

/** A dispatcher that tells when a request of its goes out. */
function watchSending(agent: Agent, onSent: () => void): Dispatcher {
  return agent.compose((dispatch) => (options, handler) => dispatch(options, tellSending(handler, onSent)));
}

/** The handler, with one more listener to its first event; everything is passed on. */
function tellSending(handler: Dispatcher.DispatchHandler, onSent: () => void): Dispatcher.DispatchHandler {
  return {
    onRequestStart: (controller, context) => {
      onSent();
      handler.onRequestStart?.(controller, context);
    },
    onRequestUpgrade: (...args) => handler.onRequestUpgrade?.(...args),
    onResponseStart: (...args) => handler.onResponseStart?.(...args),
    onResponseData: (...args) => handler.onResponseData?.(...args),
    onResponseEnd: (...args) => handler.onResponseEnd?.(...args),
    onResponseError: (...args) => handler.onResponseError?.(...args),
  };
}

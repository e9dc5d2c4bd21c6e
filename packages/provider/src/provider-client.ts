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
import type { ProviderReply } from "@adrelay/core";
import { Agent } from "undici";
import type { ProviderAccount } from "./publishers.ts";
import { type EndedCall, ReplyCollector } from "./reply-collector.ts";

export interface ProviderCall {
  readonly account: ProviderAccount;
  /** Sent as it is. */
  readonly body: string | Buffer;
  readonly requestId: string;
  /** Pass the trace on, if there is one. */
  readonly traceHeaders?: Readonly<Record<string, string>>;
  /** Bound of the whole call, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
}

/** A call that runs on until it is answered or given up. */
export interface RunningCall {
  readonly reply: Promise<RawReply>;
  /** Until then the provider can't have seen it. */
  wasSent(): boolean;
  /** Ends it early; a request that has not gone out never does. */
  giveUp(): void;
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
  readonly #bases = new WeakMap<ProviderAccount, BaseAddress>();

  /** Asks for an ad; the answer's bytes are kept, to be passed through. */
  startInjection(call: ProviderCall): RunningCall {
    return this.#post(INJECTION_PATH, call, INJECTION_ANSWER_BYTES_MAX, {});
  }

  /** Delivers an acknowledgment. Each attempt carries the same idempotency key (invariant 4). */
  async acknowledge(acknowledgment: AcknowledgeCall): Promise<ProviderReply> {
    const headers = { [IDEMPOTENCY_KEY_HEADER]: acknowledgment.adAckId };
    const call = this.#post(ACKNOWLEDGE_PATH, acknowledgment, ACKNOWLEDGE_ANSWER_BYTES_MAX, headers);
    return (await call.reply).reply;
  }

  /** Cuts what still runs and closes all connections. */
  async close(): Promise<void> {
    await this.#agent.destroy();
  }

  #post(path: string, call: ProviderCall, bytesMax: number, headers: Record<string, string>): RunningCall {
    const { account, body, requestId, traceHeaders, timeoutMs } = call;
    const base = this.#baseOf(account);
    const request = {
      origin: base.origin,
      path: base.path + path,
      method: "POST",
      body,
      headers: {
        "content-type": "application/json",
        "user-agent": "adrelay",
        [account.apiKeyHeader]: account.apiKey,
        [REQUEST_ID_HEADER]: requestId,
        ...traceHeaders,
        ...headers,
      },
    } as const;
    const collector = new ReplyCollector(bytesMax, timeoutMs);
    this.#agent.dispatch(request, collector);
    return {
      reply: collector.ended.then(toRawReply),
      wasSent: () => collector.wasSent,
      giveUp: () => collector.giveUp(),
    };
  }

  /** An account's address is taken apart once. */
  #baseOf(account: ProviderAccount): BaseAddress {
    const known = this.#bases.get(account);
    if (known !== undefined) {
      return known;
    }
    const { origin, pathname } = new URL(account.url);
    // The base may have a path of its own; the operation's path comes below it.
    const base = { origin, path: pathname.replace(/\/+$/, "") };
    this.#bases.set(account, base);
    return base;
  }
}

interface BaseAddress {
  readonly origin: string;
  readonly path: string;
}

const NO_BYTES = Buffer.alloc(0);

function toRawReply(ended: EndedCall): RawReply {
  if (ended.kind === "failed") {
    const { stage, code } = ended;
    return { reply: { kind: "failed", stage, code }, bytes: NO_BYTES, contentType: undefined };
  }
  const { status, headers, bytes } = ended;
  return {
    reply: {
      kind: "answered",
      status,
      body: parseJson(bytes),
      retryAfter: firstValue(headers["retry-after"]),
    },
    bytes,
    contentType: firstValue(headers["content-type"]),
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

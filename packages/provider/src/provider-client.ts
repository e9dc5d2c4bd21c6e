/**
 * Calls the ad service.
 *
 * 1. Every call has one time limit for all of it, from connecting to the last byte of the answer. So a provider that
 *    sends one byte a second can't delay anything.
 * 2. A call that failed says whether the provider can have seen the request (its `stage`). It is `before_send` only if
 *    no byte of the request was written, and then none is written later either.
 * 3. Redirects are answers; they are not followed.
 */
import type { IncomingHttpHeaders } from "node:http";
import {
  ACKNOWLEDGE_PATH,
  type AdAckId,
  IDEMPOTENCY_KEY_HEADER,
  INJECTION_PATH,
  REQUEST_ID_HEADER,
} from "@adrelay/contract";
import { type CallFailure, type ProviderReply, parseReply } from "@adrelay/core";
import { Agent, type Dispatcher } from "undici";
import type { ProviderAccount } from "./publishers.ts";

/** One call to a provider account. */
export interface ProviderCall {
  readonly account: ProviderAccount;
  /** Sent unchanged. */
  readonly body: string | Buffer;
  readonly requestId: string;
  /** Headers that pass the trace on, if there is a trace. */
  readonly traceHeaders?: Readonly<Record<string, string>>;
  /** Time limit of the whole call, from connecting to the last byte of the answer. */
  readonly timeoutMs: number;
}

/** The delivery of an acknowledgment; `adAckId` becomes its idempotency key. */
export interface AcknowledgeCall extends ProviderCall {
  readonly adAckId: AdAckId;
}

/** A call that runs until it is answered, fails or is given up. */
export interface RunningCall {
  /** Never rejects. */
  readonly reply: Promise<RawReply>;
  /** Whether the provider can have seen the request. */
  wasSent(): boolean;
  /** Ends the call early. A request that wasn't sent yet is never sent. */
  giveUp(): void;
}

/** A reply, and the bytes of its body as they were received. */
export interface RawReply {
  readonly reply: ProviderReply;
  readonly bytes: Buffer;
  readonly contentType: string | undefined;
}

/** The metric label of a reply: the class of its status (`2xx`), or why there is no answer. */
export function outcomeLabelOf(reply: ProviderReply): string {
  return reply.kind === "answered" ? `${Math.floor(reply.status / 100)}xx` : reply.code;
}

const CONNECT_TIMEOUT_MS = 5000;
/** Shorter than servers usually allow, so that no request is sent on a connection that the server is closing. */
const KEEP_ALIVE_MS = 4000;
const INJECTION_ANSWER_BYTES_MAX = 8 * 1024 * 1024;
const ACKNOWLEDGE_ANSWER_BYTES_MAX = 256 * 1024;

/** The HTTP client for all provider accounts. Its connections are kept and used again. */
export class ProviderClient {
  readonly #agent = new Agent({
    // No limit here: a call that waited for a connection would be sent after its caller had been answered. The
    // callers limit how many calls run concurrently.
    connections: null,
    connect: { timeout: CONNECT_TIMEOUT_MS },
    keepAliveTimeout: KEEP_ALIVE_MS,
    // ReplyCollector keeps the time limit of the whole call.
    headersTimeout: 0,
    bodyTimeout: 0,
  });
  readonly #addresses = new WeakMap<ProviderAccount, BaseAddress>();

  /** Requests an ad. The bytes of the answer are kept, so that they can be passed through. */
  startInjection(call: ProviderCall): RunningCall {
    return this.#post(INJECTION_PATH, call, INJECTION_ANSWER_BYTES_MAX, {});
  }

  /** Delivers an acknowledgment. Every attempt carries the same idempotency key (invariant 4). */
  async acknowledge(acknowledgment: AcknowledgeCall): Promise<ProviderReply> {
    const headers = { [IDEMPOTENCY_KEY_HEADER]: acknowledgment.adAckId };
    const call = this.#post(ACKNOWLEDGE_PATH, acknowledgment, ACKNOWLEDGE_ANSWER_BYTES_MAX, headers);
    return (await call.reply).reply;
  }

  /** Ends the calls that still run and closes all connections. Later calls fail without being sent. */
  async stop(): Promise<void> {
    await this.#agent.destroy();
  }

  #post(path: string, call: ProviderCall, bytesMax: number, headers: Record<string, string>): RunningCall {
    const { account, body, requestId, traceHeaders, timeoutMs } = call;
    const address = this.#addressOf(account);
    const request = {
      origin: address.origin,
      path: address.path + path,
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
      reply: collector.reply,
      wasSent: () => collector.wasSent,
      giveUp: () => collector.giveUp("connection_lost"),
    };
  }

  /** Splits an account's URL, once for each account. */
  #addressOf(account: ProviderAccount): BaseAddress {
    const known = this.#addresses.get(account);
    if (known !== undefined) {
      return known;
    }
    const { origin, pathname } = new URL(account.url);
    // The URL may have a path. The operation's path is appended to it.
    const address = { origin, path: pathname.replace(/\/+$/, "") };
    this.#addresses.set(account, address);
    return address;
  }
}

interface BaseAddress {
  readonly origin: string;
  readonly path: string;
}

const NO_BYTES = Buffer.alloc(0);

/**
 * Collects the answer of one call, as undici's lowest level delivers it. Answers are short and are needed as a whole, so
 * a stream for each answer and a signal for each time limit would be most of the cost of a call.
 *
 * undici calls `onRequestStart` before it writes the first byte of the request. A call that has ended by then is
 * aborted there, and so is never written.
 */
class ReplyCollector implements Dispatcher.DispatchHandler {
  /** Resolves once, with the first event that ends the call. */
  readonly reply: Promise<RawReply>;
  readonly #bytesMax: number;
  readonly #timer: NodeJS.Timeout;
  #resolve: (reply: RawReply) => void = () => {};
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #length = 0;
  #hasEnded = false;

  /**
   * @param bytesMax a longer answer is not read to its end
   * @param timeoutMs time limit of the whole call, from now to the last byte of the answer
   */
  constructor(bytesMax: number, timeoutMs: number) {
    this.#bytesMax = bytesMax;
    this.#timer = setTimeout(() => this.giveUp("timeout"), timeoutMs);
    this.reply = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Whether undici has begun to write the request. Before that the provider can't have seen it. */
  get wasSent(): boolean {
    return this.#controller !== undefined;
  }

  /** Ends the call before its answer is complete. */
  giveUp(code: CallFailure): void {
    this.#fail(code);
    this.#controller?.abort(new GivenUpError());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#hasEnded) {
      controller.abort(new GivenUpError());
      return;
    }
    this.#controller = controller;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // May be called several times: the answer can follow early hints (1xx).
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > this.#bytesMax) {
      this.giveUp("answer_too_large");
    } else if (!this.#hasEnded) {
      this.#chunks.push(chunk);
    }
  }

  onResponseEnd(): void {
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    const headers = this.#headers;
    const retryAfter = firstValue(headers["retry-after"]);
    const contentType = firstValue(headers["content-type"]);
    this.#end({
      reply: {
        kind: "answered",
        status: this.#status,
        body: parseReply(bytes.toString("utf8"), contentType),
        retryAfter,
      },
      bytes,
      contentType,
    });
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(isUnreachable(error) ? "unreachable" : "connection_lost");
  }

  #fail(code: CallFailure): void {
    const stage = this.wasSent ? "after_send" : "before_send";
    this.#end({ reply: { kind: "failed", stage, code }, bytes: NO_BYTES, contentType: undefined });
  }

  #end(reply: RawReply): void {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      clearTimeout(this.#timer);
      this.#resolve(reply);
    }
  }
}

/** The reason that undici gets for aborting a request that was given up. */
class GivenUpError extends Error {
  override readonly name = "GivenUpError";
}

/** Codes of errors that occur while connecting. */
const UNREACHABLE: ReadonlySet<string> = new Set([
  "ECONNREFUSED",
  "ENOTFOUND",
  "EAI_AGAIN",
  "EHOSTUNREACH",
  "ENETUNREACH",
  "UND_ERR_CONNECT_TIMEOUT",
]);

function isUnreachable(error: Error): boolean {
  return "code" in error && UNREACHABLE.has(String(error.code));
}

function firstValue(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

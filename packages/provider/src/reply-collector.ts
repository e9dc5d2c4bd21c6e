import type { IncomingHttpHeaders } from "node:http";
import type { CallFailure, ProviderReply } from "@adrelay/core";
import type { Dispatcher } from "undici";
import { describeFailure, type FailureKind } from "./call-failures.ts";
import { type DecodeResult, decodeAnswer, isPlain, readContent } from "./decode-answer.ts";
import type { RunningClock } from "./running-clock.ts";

/** A reply, and the bytes of its content: decompressed, and in UTF-8 without a byte order mark. */
export interface RawReply {
  readonly reply: ProviderReply;
  readonly bytes: Buffer;
  readonly contentType: string | undefined;
}

/** The limits of one call. */
export interface CallLimits {
  /** A longer answer is not read to its end, and a longer content is not decompressed. */
  readonly bytesMax: number;
  /** Time limit of the whole call, from now to the last byte of the answer, by `clock`. */
  readonly timeoutMs: number;
  readonly clock: RunningClock;
  /** Asked for each number of bytes of the answer before they are held. False: the answer is given up as `overloaded`. */
  readonly hold?: ((bytes: number) => boolean) | undefined;
}

/**
 * Collects the answer of one call, as undici's lowest level delivers it. Answers are short and are needed as a whole, so
 * a stream for each answer and a signal for each time limit would be most of the cost of a call.
 *
 * undici calls `onRequestStart` before it writes the first byte of the request. A call that has ended by then is
 * aborted there, and so is never written.
 */
export class ReplyCollector implements Dispatcher.DispatchHandler {
  /** Resolves once, with the first event that ends the call. */
  readonly reply: Promise<RawReply>;
  readonly #bytesMax: number;
  readonly #cancelLimit: () => void;
  readonly #hold: (bytes: number) => boolean;
  #resolve: (reply: RawReply) => void = () => {};
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #length = 0;
  #isBodySent = false;
  #hasEnded = false;

  constructor({ bytesMax, timeoutMs, clock, hold = () => true }: CallLimits) {
    this.#bytesMax = bytesMax;
    this.#hold = hold;
    this.#cancelLimit = clock.startLimit(timeoutMs, () => this.giveUp("timeout"));
    this.reply = new Promise((resolve) => {
      this.#resolve = resolve;
    });
  }

  /** Whether undici has begun to write the request. Before that the provider can't have seen it. */
  get wasSent(): boolean {
    return this.#controller !== undefined;
  }

  /** Whether the connection has taken the whole request. A long one is then no longer in memory. */
  get isBodySent(): boolean {
    return this.#isBodySent;
  }

  /** Ends the call before its answer is complete. */
  giveUp(code: CallFailure): void {
    this.#fail({ code, cause: undefined });
    this.#controller?.abort(new GivenUpError());
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#hasEnded) {
      controller.abort(new GivenUpError());
      return;
    }
    this.#controller = controller;
  }

  onRequestSent(): void {
    this.#isBodySent = true;
  }

  onResponseStart(
    _controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
  ): void {
    // May be called several times: over HTTP/2 the answer can follow early hints (1xx).
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > this.#bytesMax) {
      this.giveUp("answer_too_large");
    } else if (!this.#hold(chunk.length)) {
      this.giveUp("overloaded");
    } else if (!this.#hasEnded) {
      this.#chunks.push(chunk);
    }
  }

  onResponseEnd(): void {
    const [only] = this.#chunks;
    const encoded = {
      bytes: this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks),
      contentEncoding: listOf(this.#headers["content-encoding"]),
      contentType: firstOf(this.#headers["content-type"]),
      bytesMax: this.#bytesMax,
    };
    if (isPlain(encoded)) {
      this.#answer(readContent(encoded.bytes, encoded.contentType));
    } else {
      // The time limit goes on.
      void decodeAnswer(encoded).then((content) => this.#answerDecoded(content));
    }
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(describeFailure(error));
  }

  #answerDecoded(content: DecodeResult): void {
    if (content === "too_large" || this.#hold(content.bytes.length)) {
      this.#answer(content);
    } else {
      this.giveUp("overloaded");
    }
  }

  #answer(content: DecodeResult): void {
    if (content === "too_large") {
      this.#fail({ code: "answer_too_large", cause: undefined });
    } else if (this.#status === PROXY_REFUSES) {
      this.#fail({ code: "proxy_failed", cause: `http_${PROXY_REFUSES}` });
    } else {
      const { body, bytes, contentType } = content;
      const retryAfter = firstOf(this.#headers["retry-after"]);
      const isPage = bytes.length > 0 && body === undefined;
      const page = isPage ? ({ isPage } as const) : {};
      const reply = { kind: "answered", status: this.#status, body, ...page, retryAfter } as const;
      this.#end({ reply, bytes, contentType });
    }
  }

  #fail({ code, cause }: FailureKind): void {
    const stage = this.wasSent ? "after_send" : "before_send";
    this.#end({ reply: { kind: "failed", stage, code, cause }, bytes: NO_BYTES, contentType: undefined });
  }

  #end(reply: RawReply): void {
    if (!this.#hasEnded) {
      this.#hasEnded = true;
      this.#cancelLimit();
      this.#resolve(reply);
    }
  }
}

const NO_BYTES = Buffer.alloc(0);

/** Only proxies answer with this status (RFC 9110, section 15.5.8), to all but CONNECT. */
const PROXY_REFUSES = 407;

/** The reason that undici gets for aborting a request that was given up. */
class GivenUpError extends Error {
  override readonly name = "GivenUpError";
}

function firstOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header[0] : header;
}

/** The value of a header that is a list: several lines of it are one list (RFC 9110, section 5.3). */
function listOf(header: string | string[] | undefined): string | undefined {
  return Array.isArray(header) ? header.join() : header;
}

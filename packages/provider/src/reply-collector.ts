import type { IncomingHttpHeaders } from "node:http";
import type { CallFailure } from "@adrelay/core";
import type { Dispatcher } from "undici";

export type EndedCall =
  | {
      readonly kind: "answered";
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly bytes: Buffer;
    }
  | { readonly kind: "failed"; readonly stage: "before_send" | "after_send"; readonly code: CallFailure };

/**
 * Hears one call out, as undici's lowest level tells it: answers are short and wanted whole, so that a stream for
 * each, or a signal for each bound, would be most of what a call costs.
 *
 * A call that ends before its request goes out never goes out: undici has to ask here first.
 */
export class ReplyCollector implements Dispatcher.DispatchHandler {
  /** Fulfilled once, by the first of what can end the call. */
  readonly ended: Promise<EndedCall>;
  readonly #bytesMax: number;
  readonly #timer: NodeJS.Timeout;
  #onEnded: (ended: EndedCall) => void = () => {};
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #length = 0;
  #isEnded = false;

  /**
   * @param bytesMax a longer answer is left unread
   * @param timeoutMs bound of the whole call, from now to the last byte of the answer
   */
  constructor(bytesMax: number, timeoutMs: number) {
    this.#bytesMax = bytesMax;
    this.#timer = setTimeout(() => this.#giveUp("timeout"), timeoutMs);
    this.ended = new Promise((resolve) => {
      this.#onEnded = resolve;
    });
  }

  /** Whether the request has gone out: until then the provider can't have seen it. */
  get wasSent(): boolean {
    return this.#controller !== undefined;
  }

  /** Ends the call early. */
  giveUp(): void {
    this.#giveUp("connection_lost");
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isEnded) {
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
    // What comes last is the answer itself: there may be an early hint (1xx) before it.
    this.#status = status;
    this.#headers = headers;
  }

  onResponseData(_controller: Dispatcher.DispatchController, chunk: Buffer): void {
    this.#length += chunk.length;
    if (this.#length > this.#bytesMax) {
      this.#giveUp("answer_too_large");
    } else if (!this.#isEnded) {
      this.#chunks.push(chunk);
    }
  }

  onResponseEnd(): void {
    const [only] = this.#chunks;
    const bytes = this.#chunks.length === 1 && only !== undefined ? only : Buffer.concat(this.#chunks);
    this.#end({ kind: "answered", status: this.#status, headers: this.#headers, bytes });
  }

  onResponseError(_controller: unknown, error: Error): void {
    this.#fail(isUnreachable(error) ? "unreachable" : "connection_lost");
  }

  #giveUp(code: CallFailure): void {
    this.#fail(code);
    this.#controller?.abort(new GivenUpError());
  }

  #fail(code: CallFailure): void {
    this.#end({ kind: "failed", stage: this.wasSent ? "after_send" : "before_send", code });
  }

  #end(ended: EndedCall): void {
    if (!this.#isEnded) {
      this.#isEnded = true;
      clearTimeout(this.#timer);
      this.#onEnded(ended);
    }
  }
}

/** What undici hears of a call that is given up. */
class GivenUpError extends Error {
  override readonly name = "GivenUpError";
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

function isUnreachable(error: Error): boolean {
  return "code" in error && UNREACHABLE.has(String(error.code));
}

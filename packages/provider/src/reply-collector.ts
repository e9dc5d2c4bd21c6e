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

export interface CollectorOptions {
  /** A longer answer is left unread. */
  readonly bytesMax: number;
  /** Bound of the whole call, from now to the last byte of the answer. */
  readonly timeoutMs: number;
  /** Ends the call early. */
  readonly signal: AbortSignal | undefined;
  /** Told when the request goes out: until then the provider can't have seen it. */
  readonly onSent: (() => void) | undefined;
  /** Told once, of the first of what can end the call. */
  readonly onEnded: (ended: EndedCall) => void;
}

/**
 * Hears one call out, as undici's lowest level tells it: answers are short and wanted whole, so that a stream for
 * each, or a signal for each bound, would be most of what a call costs.
 *
 * A call that ends before its request goes out never goes out: undici has to ask here first.
 */
export class ReplyCollector implements Dispatcher.DispatchHandler {
  readonly #options: CollectorOptions;
  readonly #timer: NodeJS.Timeout;
  readonly #onAbort = () => this.#giveUp("connection_lost");
  readonly #chunks: Buffer[] = [];
  #controller: Dispatcher.DispatchController | undefined;
  #status = 0;
  #headers: IncomingHttpHeaders = {};
  #length = 0;
  #isEnded = false;

  constructor(options: CollectorOptions) {
    const { signal, timeoutMs } = options;
    this.#options = options;
    this.#timer = setTimeout(() => this.#giveUp("timeout"), timeoutMs);
    signal?.addEventListener("abort", this.#onAbort);
    if (signal?.aborted === true) {
      this.#onAbort();
    }
  }

  /** Nothing is to be sent any more. */
  get isEnded(): boolean {
    return this.#isEnded;
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    if (this.#isEnded) {
      controller.abort(new GivenUpError());
      return;
    }
    this.#controller = controller;
    this.#options.onSent?.();
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
    if (this.#length > this.#options.bytesMax) {
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
    const stage = this.#controller === undefined ? "before_send" : "after_send";
    this.#end({ kind: "failed", stage, code });
  }

  #end(ended: EndedCall): void {
    if (!this.#isEnded) {
      this.#isEnded = true;
      clearTimeout(this.#timer);
      this.#options.signal?.removeEventListener("abort", this.#onAbort);
      this.#options.onEnded(ended);
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

/**
 * One call on its way upstream, and its answer on its way back.
 *
 * 1. What the model's server sends goes to the caller as it comes, byte for byte, and no faster than the caller takes it.
 * 2. If the caller hangs up, the call upstream is cancelled.
 * 3. If an enhanced request is refused, the original goes once. Nothing else is repeated.
 * 4. Whatever happens, the response closes, and then the step is settled and the call reported, once.
 *
 * It is undici's handler itself: a stream between the two connections would cost more than all that is done here.
 */
import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Readable } from "node:stream";
import type { StepEnd } from "@adrelay/core";
import { causeOf, prepareBody, type Way } from "@adrelay/provider";
import type { Dispatcher } from "undici";
import type { Dialect } from "../dialects/dialect.ts";
import { type AnswerCopy, StreamCopy, WholeCopy } from "./answer-copy.ts";
import type { StepSink } from "./call.ts";
import type { CallOutcome, CallReport } from "./call-report.ts";
import { adHeaders, answerHeaders, pairsOf, plainMessage, textsOf } from "./headers.ts";
import type { OpenCalls, WatchedCall } from "./open-calls.ts";
import { OWN_ERRORS, sendOwnError } from "./own-errors.ts";

/** What goes upstream, but for the body. */
interface UpstreamRequest {
  readonly way: Way;
  /** Behind the base URL's path. */
  readonly path: string;
  readonly method: string;
  /** Names and values in turn, without Content-Length. */
  readonly headers: readonly string[];
}

export interface RelayOptions {
  readonly request: UpstreamRequest;
  readonly response: ServerResponse;
  readonly report: CallReport;
  readonly calls: OpenCalls;
  /** The surface's, or the one in whose form errors are. */
  readonly dialect: Dialect;
  readonly step: StepSink | undefined;
  onCopyFault(cause: string, error: unknown): void;
  /** The body is no longer needed. May be called more than once. */
  onBodySent(): void;
}

/** The statuses by which a model's server refuses a request for what is in it. */
const REFUSALS: ReadonlySet<number> = new Set([400, 413, 422]);
const EVENT_STREAM = /^text\/event-stream\b/i;
const INTERIMS_MAX = 16;
const STATUS_OK_MAX = 299;
const NO_ERROR = () => {};

/** The reason that undici gets for a call that is no longer wanted. */
class CallEndedError extends Error {
  override readonly name = "CallEndedError";
}

export class RelayedCall implements Dispatcher.DispatchHandler, WatchedCall {
  hasMoved = false;
  idleSinceMs = 0;
  readonly #options: RelayOptions;
  /** Only until the answer begins: streams last long, and bodies may be large. */
  #original: Buffer | undefined;
  #step: StepSink | undefined;
  #copy: AnswerCopy | undefined;
  #controller: Dispatcher.DispatchController | undefined;
  /** Of the request that was refused. Nothing of it counts any more. */
  #refused: Dispatcher.DispatchController | undefined;
  #isUpstreamDone = false;
  #interims = 0;
  #isStream = false;
  /** The model's; undefined as long as there is none. */
  #status: number | undefined;

  constructor(options: RelayOptions) {
    this.#options = options;
    this.#step = options.step;
  }

  /**
   * Sends the call. If the caller is already gone, nothing is sent.
   *
   * @param original goes if the model's server refuses the enhanced body; undefined if the body is the caller's own
   */
  start(body: Buffer | Readable | undefined, original?: Buffer): void {
    const { response, calls, report } = this.#options;
    this.#original = original;
    if (response.destroyed) {
      this.#settle();
      return;
    }
    calls.add(this);
    response.on("error", NO_ERROR).once("close", () => this.#settle());
    response.on("drain", () => this.#resume());
    report.sentAtMs = performance.now();
    this.#dispatch(body);
  }

  /** No byte has moved for too long, or this process stops. */
  end(outcome: Extract<CallOutcome, "idle" | "stopped">): void {
    const { response, report } = this.#options;
    report.outcome = outcome;
    this.#cancel();
    if (response.headersSent || outcome === "stopped") {
      response.destroy();
    } else {
      this.#answer("timeout");
    }
  }

  onRequestStart(controller: Dispatcher.DispatchController): void {
    this.#controller = controller;
    if (this.#isUpstreamDone) {
      controller.abort(new CallEndedError());
    }
  }

  onResponseStart(
    controller: Dispatcher.DispatchController,
    status: number,
    headers: IncomingHttpHeaders,
    message?: string,
  ): void {
    this.hasMoved = true;
    if (status < 200) {
      this.#passInterim(status, headers);
    } else if (this.#original !== undefined && REFUSALS.has(status)) {
      this.#sendOriginal(this.#original, controller, status);
    } else {
      this.#startAnswer(controller, { status, headers, message });
    }
  }

  onResponseData(controller: Dispatcher.DispatchController, chunk: Buffer): void {
    if (this.#isUpstreamDone || controller === this.#refused) {
      return;
    }
    const { response, report } = this.#options;
    this.hasMoved = true;
    report.answerBytes += chunk.length;
    const hasRoom = this.#copy === undefined ? response.write(chunk) : this.#copy.pass(response, chunk);
    if (!hasRoom) {
      controller.pause();
    }
  }

  onResponseEnd(controller: Dispatcher.DispatchController): void {
    if (this.#isUpstreamDone || controller === this.#refused) {
      return;
    }
    const { response } = this.#options;
    this.#isUpstreamDone = true;
    const trailers = textsOf(controller.rawTrailers);
    if (trailers.length > 0 && response.chunkedEncoding) {
      response.addTrailers(pairsOf(trailers));
    }
    this.#copy?.passedAll();
    response.end();
  }

  onResponseError(controller: Dispatcher.DispatchController | null | undefined, error: Error): void {
    if (this.#isUpstreamDone || (controller && controller === this.#refused)) {
      return;
    }
    const { response, report } = this.#options;
    this.#isUpstreamDone = true;
    report.cause = causeOf(error);
    report.outcome = "model_gone";
    if (response.headersSent) {
      this.#cut();
    } else {
      this.#answer(this.#controller === undefined ? "unreachable" : "lost");
    }
  }

  #dispatch(body: Buffer | Readable | undefined): void {
    const { way, path, method, headers } = this.#options.request;
    const { dispatcher, target } = way;
    const isWhole = Buffer.isBuffer(body);
    const prepared = isWhole ? prepareBody(body) : { body: body ?? null, headers: {} };
    dispatcher.dispatch(
      {
        ...target,
        path: target.path + path,
        method,
        headers: [...Object.entries({ ...target.headers, ...prepared.headers }).flat(), ...headers],
        body: prepared.body,
        // A model may think for as long as it likes: see OpenCalls. Not all of a proxy's connections have these by themselves.
        headersTimeout: 0,
        bodyTimeout: 0,
      },
      this,
    );
  }

  #sendOriginal(original: Buffer, controller: Dispatcher.DispatchController, status: number): void {
    const { report } = this.#options;
    this.#refused = controller;
    this.#controller = undefined;
    this.#original = undefined;
    this.#step?.refused(status);
    this.#step = undefined;
    report.ad = { state: "fallback", reason: "model_refused" };
    controller.abort(new CallEndedError());
    this.#dispatch(original);
  }

  #startAnswer(
    controller: Dispatcher.DispatchController,
    answer: {
      readonly status: number;
      readonly headers: IncomingHttpHeaders;
      readonly message?: string | undefined;
    },
  ): void {
    const { response, report, calls, onBodySent } = this.#options;
    const { status, headers, message } = answer;
    this.#status = status;
    this.#original = undefined;
    onBodySent();
    report.answerBegins(headers);
    this.#isStream = EVENT_STREAM.test(headers["content-type"] ?? "");
    calls.streams += this.#isStream ? 1 : 0;
    this.#copy = this.#openCopy(status, headers);
    const { ad, adResponseId } = report;
    response.writeHead(
      status,
      plainMessage(message),
      answerHeaders(textsOf(controller.rawHeaders), { isStream: this.#isStream, ad, adResponseId }),
    );
    // Node sends the head with the first chunk. If none comes in this turn, the head goes alone.
    process.nextTick(() => {
      if (report.answerBytes === 0 && !response.destroyed) {
        response.flushHeaders();
      }
    });
  }

  /** Undefined if there is nothing to read: no step, or no answer of a model. */
  #openCopy(status: number, headers: IncomingHttpHeaders): AnswerCopy | undefined {
    const { dialect, onCopyFault } = this.#options;
    if (this.#step?.readsAnswer !== true || status > STATUS_OK_MAX) {
      return undefined;
    }
    const encoding = headers["content-encoding"];
    const options = { dialect, step: this.#step, status, encoding, onFault: onCopyFault };
    return this.#isStream ? new StreamCopy(options) : new WholeCopy(options);
  }

  /** Passes the interim answers on for which Node has a method. They know no back-pressure, so their number is bounded. */
  #passInterim(status: number, { link }: IncomingHttpHeaders): void {
    const { response } = this.#options;
    this.#interims += 1;
    if (this.#interims > INTERIMS_MAX || response.headersSent || response.req.httpVersionMinor === 0) {
      return;
    }
    if (status === 102) {
      response.writeProcessing();
    } else if (status === 103 && link !== undefined) {
      passEarlyHints(response, link);
    }
  }

  /** Sends an error of the proxy. */
  #answer(name: "unreachable" | "lost" | "timeout"): void {
    const { response, report, dialect } = this.#options;
    sendOwnError(response, {
      dialect,
      error: OWN_ERRORS[name],
      requestId: report.requestId,
      headers: adHeaders(report.ad, report.adResponseId),
    });
  }

  /**
   * Closes the connection, so that the caller sees that the answer isn't complete. What was written before goes out first,
   * and counts. A caller who doesn't take it is idle.
   */
  #cut(): void {
    const { response } = this.#options;
    const { socket } = response;
    if (socket === null || socket.destroyed) {
      response.destroy();
    } else {
      // Nothing is written, but this calls back behind all writes before.
      socket.write("", () => response.destroy());
    }
  }

  #resume(): void {
    this.hasMoved = true;
    this.#controller?.resume();
  }

  #cancel(): void {
    if (!this.#isUpstreamDone) {
      this.#isUpstreamDone = true;
      this.#controller?.abort(new CallEndedError());
    }
  }

  /** The response has closed, whole or not. */
  #settle(): void {
    const { response, report, calls, onBodySent } = this.#options;
    this.#cancel();
    calls.remove(this);
    calls.streams -= this.#isStream ? 1 : 0;
    onBodySent();
    this.#original = undefined;
    const finish = () => {
      report.events = this.#copy?.events ?? 0;
      report.stepEnd ??= this.#copy?.end;
      report.finish(response);
    };
    if (this.#copy !== undefined) {
      this.#copy.settle(response.writableFinished, finish);
      return;
    }
    if (this.#step !== undefined) {
      const end = this.#endUnread();
      report.stepEnd = end;
      this.#step.ended(end, this.#status);
    }
    finish();
  }

  /** How a step has ended whose answer wasn't read. */
  #endUnread(): StepEnd {
    if (this.#status !== undefined && this.#status > STATUS_OK_MAX) {
      return { kind: "failed" };
    }
    return {
      kind: this.#options.response.writableFinished && this.#status !== undefined ? "complete" : "cut",
    };
  }
}

/** Node refuses links that it can't read, such as one with two relations. The answer needs no hint. */
function passEarlyHints(response: ServerResponse, link: string | string[]): void {
  try {
    response.writeEarlyHints({ link });
  } catch {}
}

/** What is known of a call: its one log line, its metrics and its span. No text, no keys, no query (invariant 6). */
import { randomUUID } from "node:crypto";
import type { IncomingHttpHeaders, IncomingMessage, ServerResponse } from "node:http";
import {
  parseTraceContext,
  REQUEST_ID_HEADER,
  TRACEPARENT_HEADER,
  TRACESTATE_HEADER,
} from "@adrelay/contract";
import type { StepEnd } from "@adrelay/core";
import { headerOf, type Span, type Tracing } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { ProxyMetrics } from "../proxy-metrics.ts";
import type { AdOutcome } from "./call.ts";
import type { OpenCalls } from "./open-calls.ts";
import type { PathClass, UpstreamName } from "./targets.ts";

/** How a call ended for its caller. */
export type CallOutcome =
  /** The whole answer was written. */
  | "finished"
  /** The proxy answered by itself. */
  | "refused"
  | "caller_gone"
  /** The connection to the model's server failed or was lost. */
  | "model_gone"
  | "idle"
  /** This process stopped. */
  | "stopped";

export interface ReportDeps {
  readonly log: Logger;
  readonly tracing: Tracing;
  readonly metrics: Pick<ProxyMetrics, "countAd" | "observeFirstByte">;
  readonly openCalls: Pick<OpenCalls, "begin" | "finish">;
}

const PLAIN_ID = /^[\w.:-]{1,128}$/;
const CALLER_GONE_STATUS = 499;

/** One call. Its members are set as they become known. */
export class CallReport {
  readonly requestId: string;
  readonly span: Span;
  readonly #deps: ReportDeps;
  readonly #method: string;
  readonly #startedAtMs = performance.now();
  publisher: string | undefined;
  path: PathClass = "other";
  upstream: UpstreamName | undefined;
  ad: AdOutcome | undefined;
  adResponseId: string | undefined;
  outcome: CallOutcome | undefined;
  /** Why the proxy answered by itself, or why the model's server was gone. */
  cause: string | undefined;
  stepEnd: StepEnd | undefined;
  /** When the body of a surface had come. */
  bodyAtMs: number | undefined;
  /** When the call went upstream. */
  sentAtMs: number | undefined;
  #firstByteAtMs: number | undefined;
  /** The model's server's own: without the caller's id its answer has no other. */
  #modelRequestId: string | undefined;
  answerBytes = 0;
  events = 0;

  constructor(deps: ReportDeps, request: IncomingMessage) {
    this.#deps = deps;
    deps.openCalls.begin();
    const given = headerOf(request, REQUEST_ID_HEADER.toLowerCase());
    this.requestId = given !== undefined && PLAIN_ID.test(given) ? given : randomUUID();
    this.#method = request.method ?? "";
    this.span = deps.tracing.startSpan({
      name: this.#method,
      kind: "server",
      parent: parseTraceContext(headerOf(request, TRACEPARENT_HEADER), headerOf(request, TRACESTATE_HEADER)),
      attributes: { "http.request.method": this.#method },
    });
  }

  /** The answer of the model's server has come, as far as its headers. */
  answerBegins(headers: IncomingHttpHeaders): void {
    this.#firstByteAtMs = performance.now();
    const id = headers["x-request-id"] ?? headers["request-id"];
    this.#modelRequestId = typeof id === "string" && PLAIN_ID.test(id) ? id : undefined;
  }

  /** The response has closed, and its step has ended. To be called once. */
  finish(response: ServerResponse): void {
    const status = response.headersSent ? response.statusCode : CALLER_GONE_STATUS;
    const outcome = this.outcome ?? (response.writableFinished ? "finished" : "caller_gone");
    this.#countAd();
    this.#observeFirstByte();
    this.#endSpan(status);
    this.#deps.log.info({
      event: "proxy_call",
      publisher: this.publisher,
      path: this.path,
      upstream: this.upstream,
      method: this.#method,
      status,
      outcome,
      cause: this.cause,
      ad: this.ad?.state,
      ad_reason: this.ad?.reason,
      ad_detail: this.ad?.detail,
      ad_response_id: this.adResponseId,
      step_end: this.stepEnd?.kind,
      first_byte_ms: this.#since(this.#firstByteAtMs),
      duration_ms: this.#since(performance.now()),
      answer_bytes: this.answerBytes,
      events: this.events,
      request_id: this.requestId,
      model_request_id: this.#modelRequestId === this.requestId ? undefined : this.#modelRequestId,
      trace_id: this.span.context?.traceId,
    });
    this.#deps.openCalls.finish();
  }

  #countAd(): void {
    if (this.ad !== undefined && this.publisher !== undefined) {
      this.#deps.metrics.countAd(this.publisher, this.ad);
    }
  }

  /** Only of surfaces: other calls are of many kinds. */
  #observeFirstByte(): void {
    const { bodyAtMs, sentAtMs } = this;
    const firstByteAtMs = this.#firstByteAtMs;
    if (bodyAtMs !== undefined && sentAtMs !== undefined && firstByteAtMs !== undefined) {
      this.#deps.metrics.observeFirstByte("ad", sentAtMs - bodyAtMs);
      this.#deps.metrics.observeFirstByte("model", firstByteAtMs - sentAtMs);
    }
  }

  #endSpan(status: number): void {
    this.span.set({
      "adrelay.operation": this.path,
      "adrelay.publisher": this.publisher,
      "adrelay.outcome": this.ad?.state,
      "adrelay.ad_response_id": this.adResponseId,
      "http.response.status_code": status,
      "adrelay.request_id": this.requestId,
    });
    this.span.end({ isFault: status >= 500 });
  }

  #since(atMs: number | undefined): number | undefined {
    return atMs === undefined ? undefined : Math.round((atMs - this.#startedAtMs) * 100) / 100;
  }
}

/** How the two halves of the proxy meet: `http/` passes bytes through, `turns/` decides on the ad and keeps the turn. */
import type { TraceContext } from "@adrelay/contract";
import type { StepEnd } from "@adrelay/core";
import type { Publisher } from "@adrelay/provider";
import type { Caller } from "@adrelay/relay-kit";
import type { Dialect, EventReading } from "../dialects/dialect.ts";

/** A call of a surface, with its whole body. */
export interface SurfaceCall {
  readonly dialect: Dialect;
  readonly publisher: Publisher;
  readonly body: Buffer;
  /** Headers of the caller, lower-case names. */
  header(name: string): string | undefined;
  readonly requestId: string;
  /** The context of the call's span; undefined if there is no trace. */
  readonly trace: TraceContext | undefined;
  /** When the body's last byte came, by `performance.now()`. */
  readonly bodyAtMs: number;
  /** Gone once it hangs up before its answer is finished. */
  readonly caller: Caller;
}

/** What `X-Adrelay-Ad` says. */
export type AdState = "injected" | "no_fill" | "rejected" | "fallback" | "skipped";

/** The ad of a call, as its answer and the metrics say it. */
export interface AdOutcome {
  readonly state: AdState;
  readonly reason: string | undefined;
  /** The headers of the call that the reason is about, names and never values; or the quota or limit. Not in metrics. */
  readonly detail?: string | undefined;
}

/** What follows from a call before it goes upstream. */
export interface PreparedCall {
  readonly ad: AdOutcome;
  readonly adResponseId: string | undefined;
  /** What goes upstream: the body with the enhanced prompt, or as it came. */
  readonly body: Buffer;
  /** Undefined if nothing must be journaled. */
  readonly step: StepSink | undefined;
}

/**
 * What the stream tells of a step. Each method returns at once and never throws: a fault of the journal never touches the stream.
 */
export interface StepSink {
  /** False if it needs only the status and the end, and not what is written. */
  readonly readsAnswer: boolean;
  /** The model's server refused the enhanced request (400, 413, 422): the original goes now. */
  refused(status: number): void;
  /** An event whose bytes are written to the caller. */
  written(reading: EventReading): void;
  /** An id of a client's tool call was seen in the stream, written or not. */
  sawCalls(callIds: readonly string[]): void;
  /** The step is over. `status`: of the model's server; undefined if it gave none. Later calls change nothing. */
  ended(end: StepEnd, status: number | undefined): void;
}

export type PrepareCall = (call: SurfaceCall) => Promise<PreparedCall>;

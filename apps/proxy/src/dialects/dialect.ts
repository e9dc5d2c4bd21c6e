/** What the proxy must know of a form of model calls. Each dialect is one module; nothing else reads bodies or events. */
import type { DialectName, StepEnd } from "@adrelay/core";

/** Why a call gets no ad, as far as its body tells. */
export type BodySkipReason =
  | "not_json"
  | "no_user_text"
  | "prefill"
  | "structured_output"
  | "forced_tool"
  | "choices"
  | "audio"
  | "background"
  | "provider_state"
  | "cache_marked"
  | "stored_response"
  /** Its last items are results of tools, without an id by which a turn can be found. */
  | "unknown_step"
  /** It has more values, or deeper ones, than are looked at. */
  | "too_large";

/** A JSON string's place in the body: bytes from its opening quote to after its closing quote. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** Rules of the publisher that decide whether an ad may go in. */
export interface BodyRules {
  readonly allowsCacheMarked: boolean;
  readonly allowsStoredResponses: boolean;
}

export type ReadRequest =
  | { readonly kind: "skip"; readonly reason: BodySkipReason }
  | {
      readonly kind: "ad_may_go_in";
      /** The last user text, decoded. The enhanced prompt replaces it. */
      readonly userText: string;
      /** All texts of its message, joined by blank lines: what an ad is asked for. */
      readonly messageText: string;
      readonly place: Place;
      /** Ids of the tool calls that the last items answer, or of the paused step; empty for a new message. */
      readonly answeredCallIds: readonly string[];
    };

/** What one event says, or one whole answer. */
export interface EventReading {
  /** The text that the user reads. */
  readonly text: string;
  /** Ids of the client's tool calls (of server tools at `pause_turn`), each once. */
  readonly callIds: readonly string[];
  /** Present in the event that ends the step. */
  readonly end?: StepEnd;
}

/** An event of a stream: its `event` field, if it has one, and its data. */
export interface StreamEvent {
  readonly event: string | undefined;
  readonly data: string;
}

/** Reads the events of one answer, in their order. */
export interface AnswerReader {
  read(event: StreamEvent): EventReading;
}

/** An error of the proxy itself, in the dialect's form. */
export interface ErrorBody {
  readonly status: 401 | 408 | 413 | 501 | 502 | 503 | 504;
  readonly code: string;
  readonly message: string;
  /** Shown where the dialect has a place for it. */
  readonly requestId?: string;
}

export interface Dialect {
  readonly name: DialectName;
  /** Never throws: what isn't as expected is a reason to skip. */
  readRequest(body: Buffer, rules: BodyRules): ReadRequest;
  newReader(): AnswerReader;
  /** A whole answer that isn't a stream. */
  readAnswer(body: Buffer): EventReading;
  formatError(error: ErrorBody): string;
}

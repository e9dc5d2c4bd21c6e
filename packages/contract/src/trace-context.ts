/** W3C Trace Context: parse, format and pass on the position of a request in a distributed trace. */
import { z } from "zod";

/** Header with the ids of the trace and of the calling span. */
export const TRACEPARENT_HEADER = "traceparent";
/** Header with data that tracing vendors add to a trace. */
export const TRACESTATE_HEADER = "tracestate";

/** All-zero ids are invalid, and so is version ff. Later versions may append fields after the flags. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{1,100})?$/;

/** A tracestate that we pass on. We drop a longer one, and one with characters that no header can carry. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The position of a request in a distributed trace: the trace, and the span that the request is part of. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the service that began the trace records it. */
  readonly isSampled: boolean;
  /** The `tracestate` header; absent if there was none, or if we dropped it. */
  readonly state?: string;
}

/** Parses both headers; undefined if the traceparent is missing or invalid. */
export function parseTraceContext(
  traceparent: string | undefined,
  tracestate?: string,
): TraceContext | undefined {
  const [, version, traceId, spanId, flags = "", rest] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || (version === "00" && rest !== undefined)) {
    return undefined;
  }
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  const hasState = tracestate !== undefined && TRACESTATE.test(tracestate);
  return { traceId, spanId, isSampled, ...(hasState ? { state: tracestate } : {}) };
}

/** Formats a traceparent of version 00, without the tracestate. */
export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The headers that pass a trace on; none if there is no trace. */
export function traceHeadersOf(context: TraceContext | undefined): Record<string, string> {
  if (context === undefined) {
    return {};
  }
  return {
    [TRACEPARENT_HEADER]: formatTraceparent(context),
    ...(context.state === undefined ? {} : { [TRACESTATE_HEADER]: context.state }),
  };
}

/** The traceparent in a delivery job. An invalid one counts as absent: it must not make the job unreadable. */
export const jobTraceparentSchema = z
  .string()
  .refine((text) => parseTraceContext(text) !== undefined)
  .optional()
  .catch(undefined);

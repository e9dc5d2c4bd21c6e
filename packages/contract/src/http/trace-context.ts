import { z } from "zod";

/** Headers of W3C Trace Context. */
export const TRACEPARENT_HEADER = "traceparent";
export const TRACESTATE_HEADER = "tracestate";

/** Ids of zeros only are invalid, and so is version ff. Later versions may carry more behind the flags. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{1,100})?$/;

/** Whose work a piece of work is part of. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether whoever began the trace keeps it. */
  readonly isSampled: boolean;
  /** The header `tracestate`, bounded; absent if there was none. */
  readonly state?: string;
}

/** What other tracers have to say; longer ones, and what no header can hold, are left out. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** Reads both headers; undefined for what isn't in the form of a traceparent. */
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

export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The headers that pass a trace on; none without one. */
export function traceHeadersOf(context: TraceContext | undefined): Record<string, string> {
  if (context === undefined) {
    return {};
  }
  return {
    [TRACEPARENT_HEADER]: formatTraceparent(context),
    ...(context.state === undefined ? {} : { [TRACESTATE_HEADER]: context.state }),
  };
}

/** As the queue keeps it: nonsense counts as none, since it must not make a job unreadable. */
export const jobTraceparentSchema = z
  .string()
  .refine((text) => parseTraceContext(text) !== undefined)
  .optional()
  .catch(undefined);

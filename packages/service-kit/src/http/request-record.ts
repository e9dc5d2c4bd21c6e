import type { Response } from "express";
import { NO_SPAN, type Span } from "../tracing/tracing.ts";

/** Fields of a request's one log line. Nothing that a user wrote belongs here (invariant 6). */
export type Notes = Readonly<Record<string, string | number>>;

/** What the house keeps of a request while it runs. On the response itself: a map beside it is work for the collector. */
export interface RequestRecord {
  /** Empty until it has one. */
  requestId: string;
  span: Span;
  readonly notes: Record<string, string | number>;
}

declare global {
  namespace Express {
    interface Response {
      houseRecord?: RequestRecord;
    }
  }
}

export function recordOf(response: Response): RequestRecord {
  response.houseRecord ??= { requestId: "", span: NO_SPAN, notes: {} };
  return response.houseRecord;
}

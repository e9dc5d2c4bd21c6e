/** When which fault really ran, by the wall clock: a violation is explained by it, or is none. */
import type { Fault } from "./fault.ts";

export interface FaultSpan {
  readonly what: string;
  readonly fault: Fault;
  readonly fromMs: number;
  /** Infinity while it lasts. */
  untilMs: number;
}

export class Timeline {
  readonly spans: FaultSpan[] = [];

  begin(what: string, fault: Fault): FaultSpan {
    const span = { what, fault, fromMs: Date.now(), untilMs: Number.POSITIVE_INFINITY };
    this.spans.push(span);
    return span;
  }

  end(span: FaultSpan): void {
    span.untilMs = Date.now();
  }

  /** Faults that ran at any time from one moment to another. */
  during(fromMs: number, untilMs: number): readonly FaultSpan[] {
    return this.spans.filter((span) => span.fromMs <= untilMs && span.untilMs >= fromMs);
  }
}

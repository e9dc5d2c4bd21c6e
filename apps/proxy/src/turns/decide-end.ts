/** What follows for a turn from the end of one of its steps. Pure; the table is in decide-end.test.ts. */
import type { StepEnd } from "@adrelay/core";
import type { FinalStep } from "@adrelay/store";

type StepOutcome = FinalStep["outcome"];

/** How a step ended, and what of it was written to the caller. */
export interface StepFacts {
  readonly end: StepEnd;
  readonly wroteText: boolean;
  /** A tool call of the client's was written, so the caller may answer it. */
  readonly wroteCalls: boolean;
  /** Of the model's server; undefined if it gave none. */
  readonly status: number | undefined;
}

/** `outcome`: how the turn ended, if nothing more comes. */
export type EndDecision = {
  readonly kind: "settle" | "wait_for_next_step" | "wait_for_retry";
  readonly outcome: StepOutcome;
};

export function decideEnd({ end, wroteText, wroteCalls, status }: StepFacts): EndDecision {
  switch (end.kind) {
    case "complete":
      return { kind: "settle", outcome: "complete" };
    case "continues":
      return { kind: "wait_for_next_step", outcome: "complete" };
    case "cut":
    case "failed":
      if (wroteCalls) {
        return { kind: "wait_for_next_step", outcome: end.kind };
      }
      return { kind: !wroteText && isRepeatable(status) ? "wait_for_retry" : "settle", outcome: end.kind };
    default:
      return end satisfies never;
  }
}

const REPEATABLE: ReadonlySet<number> = new Set([408, 409, 429]);

/** Whether clients repeat a call that ended so. After another 4xx, the same call would fail again. */
function isRepeatable(status: number | undefined): boolean {
  return status === undefined || status < 400 || status >= 500 || REPEATABLE.has(status);
}

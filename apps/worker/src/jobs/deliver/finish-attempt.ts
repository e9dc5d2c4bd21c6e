/**
 * The end of an attempt that its provider had the last word on: booked, job finished, next job fetched, in one step
 * of Redis (invariant 3 within it: the ledger first).
 *
 * The call may come twice, if its connection fails: the repeat books nothing, and the attempt is reported once, with
 * the answer that arrived.
 */
import type { Finisher, LastWord, StandingLook } from "@adrelay/ledger";
import type { FinishJob } from "@adrelay/queue";
import type { Insistence } from "./insistence.ts";
import { type DecidedAttempt, type ReportDeps, reportAttempt } from "./report-attempt.ts";

export type EndedAttempt = DecidedAttempt<LastWord>;

export interface FinishDeps extends ReportDeps {
  readonly finisher: Finisher;
  readonly insistence: Insistence;
  /** Told of what could not be booked. */
  onError(error: unknown, adResponseId: string): void;
}

/** What the queue is to finish jobs with. */
export function makeFinish(deps: FinishDeps): FinishJob<EndedAttempt, StandingLook> {
  return async (job, ended) => {
    if (ended === undefined) {
      return deps.finisher.finish({ job, settlement: undefined });
    }
    const request = { job, settlement: ended.settlement };
    try {
      const { booked, ...finished } = await deps.insistence.insist(() => deps.finisher.finish(request));
      if (booked !== undefined) {
        reportAttempt(deps, ended, booked);
      }
      return finished;
    } catch (error) {
      ended.made.span.end();
      deps.onError(error, ended.settlement.id);
      throw error;
    }
  };
}

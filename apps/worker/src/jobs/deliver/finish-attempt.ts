/**
 * The end of an attempt that its provider had the last word on: booked, job finished, next job fetched, in one step
 * of Redis (invariant 3 within it: the ledger first).
 *
 * The call may come twice, if its connection fails: the repeat books nothing, and the attempt is reported once, with
 * the answer that arrived.
 */
import type { Finisher, FinishRequest, FinishResult, LastWord, StandingLook } from "@adrelay/ledger";
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
    let result: FinishResult;
    try {
      result = await deps.finisher.finish(request);
    } catch (error) {
      result = await finishAgain(deps, { request, ended, error });
    }
    const { booked, ...finished } = result;
    if (booked !== undefined) {
      reportAttempt(deps, ended, booked);
    }
    return finished;
  };
}

interface FailedFinish {
  readonly request: FinishRequest;
  readonly ended: EndedAttempt;
  readonly error: unknown;
}

async function finishAgain(
  { finisher, insistence, onError }: FinishDeps,
  { request, ended, error }: FailedFinish,
): Promise<FinishResult> {
  try {
    return await insistence.askAgain(error, () => finisher.finish(request));
  } catch (failure) {
    ended.made.span.end();
    onError(failure, ended.settlement.id);
    throw failure;
  }
}

import { type AdResponseId, adResponseIdSchema } from "@adrelay/contract";
import { OVERDUE, sendProblem, withDeadline } from "@adrelay/service-kit";
import type { Request, Response } from "express";

/** Leaves time for the answer within the second that callers are promised. */
const LEDGER_TIMEOUT_MS = 900;
const RETRY_AFTER_SECONDS = "1";

/** The ad response that the path names; undefined if the refusal has been sent. */
export function parseIdInPath(request: Request, response: Response): AdResponseId | undefined {
  const id = adResponseIdSchema.safeParse(request.params["ad_response_id"]);
  if (!id.success) {
    const errors = [{ path: "ad_response_id", message: "ad_response_id must be a UUID" }];
    sendProblem(response, "validation_failed", { errors });
  }
  return id.data;
}

/** The ledger's answer, or OVERDUE if it gave none in time, for whatever reason. */
export function askLedger<T>(answer: Promise<T>): Promise<T | typeof OVERDUE> {
  return withDeadline(
    answer.catch((): typeof OVERDUE => OVERDUE),
    LEDGER_TIMEOUT_MS,
  );
}

/** Says that Redis can't be asked or written to right now. */
export function sendUnavailable(response: Response): void {
  response.set("Retry-After", RETRY_AFTER_SECONDS);
  sendProblem(response, "queue_unavailable");
}

/** Shared parts of the operations that ask the store. */
import { type AdResponseId, adResponseIdSchema, type FindingView } from "@adrelay/contract";
import type { Finding } from "@adrelay/core";
import { OVERDUE, sendProblem, withDeadline } from "@adrelay/service-kit";
import type { Request, Response } from "express";

/** The state of the ad response that an answer is about, as the look-up has it. */
export const STATE_HEADER = "X-Adrelay-State";

/** Leaves time for the answer within the second that callers are promised. */
const STORE_TIMEOUT_MS = 900;
const RETRY_AFTER_SECONDS = "1";

/** The ad response that the path names; undefined if a refusal was sent. */
export function parseIdInPath(request: Request, response: Response): AdResponseId | undefined {
  const id = adResponseIdSchema.safeParse(request.params["ad_response_id"]);
  if (!id.success) {
    const errors = [{ path: "ad_response_id", message: "ad_response_id must be a UUID" }];
    sendProblem(response, "validation_failed", { errors });
  }
  return id.data;
}

/** The store's answer, or OVERDUE if it gave none in time, for any reason. */
export function askStore<T>(answer: Promise<T>): Promise<T | typeof OVERDUE> {
  return withDeadline(
    answer.catch((): typeof OVERDUE => OVERDUE),
    STORE_TIMEOUT_MS,
  );
}

/** Answers that Redis can't be read or written now. */
export function sendUnavailable(response: Response): void {
  response.set("Retry-After", RETRY_AFTER_SECONDS);
  sendProblem(response, "queue_unavailable");
}

/** A time as answers show it: ISO 8601 in UTC; null if there is none. */
export function isoTime(atMs: number): string;
export function isoTime(atMs: number | undefined): string | null;
export function isoTime(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}

/** What was found of an ad in a turn's text; null if no turn was acknowledged. */
export function findingViewOf(finding: Finding | undefined): FindingView | null {
  return finding === undefined ? null : { mention: finding.mention, labelled: finding.isLabelled };
}

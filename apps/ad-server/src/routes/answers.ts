import { ERROR_CATALOGUE, type ErrorCode, makeProblem, PROBLEM_CONTENT_TYPE } from "@adrelay/contract";
import { requestIdOf, sendProblem } from "@adrelay/service-kit";
import type { Response } from "express";

/** Redis is mostly back within moments; callers of acknowledgments keep their own longer schedules. */
const RETRY_AFTER_S = 1;

/** Says that the books can't be reached: nothing is promised, the caller asks again. */
export function sendStorageUnavailable(response: Response): void {
  response.set("Retry-After", String(RETRY_AFTER_S));
  sendProblem(response, "storage_unavailable");
}

/** An error answer of the catalogue with extension members (RFC 9457, section 3.2). */
export function sendProblemWith(
  response: Response,
  code: ErrorCode,
  extensions: Readonly<Record<string, string>>,
): void {
  const problem = { ...makeProblem(code, requestIdOf(response)), ...extensions };
  response.status(ERROR_CATALOGUE[code].status).type(PROBLEM_CONTENT_TYPE).send(JSON.stringify(problem));
}

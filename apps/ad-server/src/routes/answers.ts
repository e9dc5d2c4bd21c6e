import { sendProblem } from "@adrelay/service-kit";
import type { Response } from "express";

/** Redis is mostly back within moments; callers of acknowledgments keep their own longer schedules. */
const RETRY_AFTER_S = 1;

/** Says that the books can't be reached: nothing is promised, the caller asks again. */
export function sendStorageUnavailable(response: Response): void {
  response.set("Retry-After", String(RETRY_AFTER_S));
  sendProblem(response, "storage_unavailable");
}

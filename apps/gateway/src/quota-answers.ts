/** Answers to requests that a quota refuses, or for which Redis or this process has no room. */
import {
  RETRY_AFTER_SECONDS as OVERLOADED_RETRY_AFTER_SECONDS,
  type QuotaName,
  type Refusal,
} from "@adrelay/relay-kit";
import { sendProblem } from "@adrelay/service-kit";
import type { Response } from "express";

/** A publisher uses `used` of `limit`, in the quota's own unit. */
interface OverQuotaAnswer {
  readonly quota: QuotaName;
  readonly limit: number;
  /** undefined if the quota is a rate. */
  readonly used: number | undefined;
  readonly retryAfterSeconds?: number;
}

/** Room comes with deliveries, which nobody can foresee. A caller that repeats every few seconds is no burden. */
const RETRY_AFTER_SECONDS = "10";

const DETAILS: Readonly<Record<QuotaName, string>> = {
  requests_per_second: "this publisher sends too many requests a second",
  bytes_per_second: "this publisher sends too many bytes a second",
  injections_in_flight: "too many injections of this publisher are under way",
  bytes_in_flight: "the requests of this publisher that are under way have too many bytes",
  queued_bytes: "too many bytes of this publisher's acknowledgments are queued",
  dead_bytes:
    "too many bytes of this publisher's acknowledgments are dead letters: an operator must replay or discard some",
  unknown_bytes: "too many bytes of this publisher's acknowledgments have ids that the relay doesn't know",
  redis_memory: "the relay's storage is nearly full",
};

/** Answers that the publisher's quota is used up. */
export function sendOverQuota(
  response: Response,
  { quota, limit, used, retryAfterSeconds }: OverQuotaAnswer,
): void {
  response.set("Retry-After", String(retryAfterSeconds ?? RETRY_AFTER_SECONDS));
  const extensions = used === undefined ? { quota, limit } : { quota, limit, used };
  sendProblem(response, "rate_limited", { detail: DETAILS[quota], extensions });
}

/** Answers that Redis' memory is kept for others. That isn't the publisher's fault. */
export function sendStorageFull(response: Response): void {
  response.set("Retry-After", RETRY_AFTER_SECONDS);
  sendProblem(response, "storage_full", { detail: DETAILS.redis_memory });
}

/** Answers a request that was not admitted. */
export function sendRefusal(response: Response, refusal: Refusal): void {
  if (refusal.kind === "over_quota") {
    sendOverQuota(response, refusal);
  } else {
    response.set("Retry-After", String(OVERLOADED_RETRY_AFTER_SECONDS));
    sendProblem(response, "overloaded", { extensions: { limit: refusal.limit } });
  }
}

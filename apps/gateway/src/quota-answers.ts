/** Answers to requests that a quota refuses, or for which Redis has no room. */
import { sendProblem } from "@adrelay/service-kit";
import type { Response } from "express";

/** Why a request was refused, in answers and metrics. */
export const QUOTA_NAMES = [
  "queued_bytes",
  "dead_bytes",
  "unknown_bytes",
  /** No quota of a publisher: Redis is nearly full. */
  "redis_memory",
] as const;
export type QuotaName = (typeof QUOTA_NAMES)[number];

/** A publisher uses `used` of `limit`, in the quota's own unit. */
interface OverQuotaAnswer {
  readonly quota: QuotaName;
  readonly limit: number;
  readonly used: number;
}

/** Room comes with deliveries, which nobody can foresee. A caller that repeats every few seconds is no burden. */
const RETRY_AFTER_SECONDS = "10";

const DETAILS: Readonly<Record<QuotaName, string>> = {
  queued_bytes: "too many bytes of this publisher's acknowledgments are queued",
  dead_bytes:
    "too many bytes of this publisher's acknowledgments are dead letters: an operator must replay or discard some",
  unknown_bytes: "too many bytes of this publisher's acknowledgments have ids that the relay doesn't know",
  redis_memory: "the relay's storage is nearly full",
};

/** Answers that the publisher's quota is used up. */
export function sendOverQuota(response: Response, { quota, limit, used }: OverQuotaAnswer): void {
  response.set("Retry-After", RETRY_AFTER_SECONDS);
  sendProblem(response, "rate_limited", { detail: DETAILS[quota], extensions: { quota, limit, used } });
}

/** Answers that Redis' memory is kept for others. That isn't the publisher's fault. */
export function sendStorageFull(response: Response): void {
  response.set("Retry-After", RETRY_AFTER_SECONDS);
  sendProblem(response, "storage_full", { detail: DETAILS.redis_memory });
}

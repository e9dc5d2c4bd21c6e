import type { Refusal } from "./holding.ts";

/** Why a request was refused, in answers and metrics. */
export const QUOTA_NAMES = [
  "requests_per_second",
  "bytes_per_second",
  "injections_in_flight",
  "bytes_in_flight",
  "queued_bytes",
  "dead_bytes",
  "unknown_bytes",
  /** No quota of a publisher: Redis is nearly full. */
  "redis_memory",
] as const;
/** The name of a quota, or of Redis' memory. */
export type QuotaName = (typeof QUOTA_NAMES)[number];

/** What refused a request, in one word for logs and headers. */
export function nameOfRefusal(refusal: Refusal): string {
  return refusal.kind === "over_quota" ? refusal.quota : `process_${refusal.limit}`;
}

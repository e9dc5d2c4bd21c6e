/** The quotas of every publisher for which the publishers' file names no others. */
import { bytesLimitSchema, countLimitSchema, type Quotas, sizeLimitSchema } from "@adrelay/core";
import { setting } from "@adrelay/service-kit";

export const QUOTA_SETTINGS = {
  QUOTA_REQUESTS_PER_SECOND: setting(
    countLimitSchema,
    "1000",
    "How many requests a second of each operation a publisher may send to one gateway, or off. As all QUOTA settings, a default: PUBLISHERS_FILE may name others.",
  ),
  QUOTA_BURST: setting(
    countLimitSchema,
    "2000",
    "How many requests of each operation a publisher may send to one gateway at once after a pause, or off.",
  ),
  QUOTA_BYTES_PER_SECOND: setting(
    sizeLimitSchema,
    "8MB",
    "How many bytes of bodies a second of each operation a publisher may send to one gateway: a size such as 8MB, or off.",
  ),
  QUOTA_BYTES_BURST: setting(
    sizeLimitSchema,
    "16MB",
    "How many bytes of bodies of each operation a publisher may send to one gateway at once after a pause, or off. The last one of them may be longer.",
  ),
  QUOTA_INJECTIONS_IN_FLIGHT: setting(
    countLimitSchema,
    "500",
    "How many injections of a publisher may be under way in one gateway, or off.",
  ),
  QUOTA_BYTES_IN_FLIGHT: setting(
    bytesLimitSchema,
    "50%",
    "How many bytes of requests of a publisher one gateway may hold: a size such as 64MB, a share of what it may hold in all, or off.",
  ),
  QUOTA_QUEUED_BYTES: setting(
    bytesLimitSchema,
    "50%",
    "How much memory of Redis a publisher's queued acknowledgments of known ids may take: a size such as 64MB, a share of maxmemory, or off.",
  ),
  QUOTA_DEAD_BYTES: setting(
    bytesLimitSchema,
    "25%",
    "The same of its dead letters. They are kept in any case; over the quota, new acknowledgments are refused.",
  ),
  QUOTA_UNKNOWN_BYTES: setting(
    bytesLimitSchema,
    "5%",
    "The same of its acknowledgments of unknown ids, queued and dead.",
  ),
} as const;

/** The settings above by their names in code. */
export function defaultQuotas(settings: {
  readonly QUOTA_REQUESTS_PER_SECOND: number;
  readonly QUOTA_BURST: number;
  readonly QUOTA_BYTES_PER_SECOND: number;
  readonly QUOTA_BYTES_BURST: number;
  readonly QUOTA_INJECTIONS_IN_FLIGHT: number;
  readonly QUOTA_BYTES_IN_FLIGHT: Quotas["bytesInFlight"];
  readonly QUOTA_QUEUED_BYTES: Quotas["queuedBytes"];
  readonly QUOTA_DEAD_BYTES: Quotas["deadBytes"];
  readonly QUOTA_UNKNOWN_BYTES: Quotas["unknownBytes"];
}): Quotas {
  return {
    requestsPerSecond: settings.QUOTA_REQUESTS_PER_SECOND,
    burst: settings.QUOTA_BURST,
    bytesPerSecond: settings.QUOTA_BYTES_PER_SECOND,
    bytesBurst: settings.QUOTA_BYTES_BURST,
    injectionsInFlight: settings.QUOTA_INJECTIONS_IN_FLIGHT,
    bytesInFlight: settings.QUOTA_BYTES_IN_FLIGHT,
    queuedBytes: settings.QUOTA_QUEUED_BYTES,
    deadBytes: settings.QUOTA_DEAD_BYTES,
    unknownBytes: settings.QUOTA_UNKNOWN_BYTES,
  };
}

/** What intake must know of a publisher, and of Redis, before it accepts an acknowledgment (docs/adr/0046). */
import type { PublisherId } from "@adrelay/contract";
import type { EmptyAnswers } from "@adrelay/core";

/** The quotas of memory, as scripts and metrics name them. */
export const STORED_QUOTAS = ["queued_bytes", "dead_bytes", "unknown_bytes"] as const;
export type StoredQuota = (typeof STORED_QUOTAS)[number];

/** A publisher uses `usedBytes` of a quota already, so nothing was accepted. */
export interface OverQuota {
  readonly kind: "over_quota";
  readonly quota: StoredQuota;
  readonly limitBytes: number;
  readonly usedBytes: number;
}

/** Limits in bytes; an infinite number is no limit. */
export type StoredLimits = Readonly<Record<StoredQuota, number>>;

export interface IntakeRules {
  /** Whether an id that the ledger doesn't know is accepted. */
  readonly acceptsUnknown: boolean;
  readonly limits: StoredLimits;
  /** Whether a turn without any text is acknowledged, which is the default, or abandoned. */
  readonly emptyAnswers?: EmptyAnswers | undefined;
}

export type IntakeRulesOf = (publisher: PublisherId) => IntakeRules;

/**
 * How many bytes all publishers may take together. Above it, acknowledgments of unknown or of known ids are refused, so that
 * room is left for the others.
 */
export interface IntakeRoom {
  readonly unknownBytes: number;
  readonly knownBytes: number;
}

export const NO_LIMITS: StoredLimits = {
  queued_bytes: Number.POSITIVE_INFINITY,
  dead_bytes: Number.POSITIVE_INFINITY,
  unknown_bytes: Number.POSITIVE_INFINITY,
};
export const NO_ROOM_LIMIT: IntakeRoom = {
  unknownBytes: Number.POSITIVE_INFINITY,
  knownBytes: Number.POSITIVE_INFINITY,
};

/** A limit as an argument of a script: '' is none. */
export function limitArg(bytes: number): string {
  return Number.isFinite(bytes) ? String(Math.max(Math.floor(bytes), 0)) : "";
}

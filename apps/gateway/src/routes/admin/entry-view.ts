import type { AcknowledgmentDetail, AcknowledgmentView } from "@adrelay/contract";
import { DEAD_REASON_TEXTS, DEAD_REASONS } from "@adrelay/core";
import type { LedgerEntry } from "@adrelay/ledger";
import { ackIdOf } from "../../intake/fingerprints.ts";
import { isoTime } from "../iso-time.ts";

/** One ad response as operators see it: everything but what a user wrote. Null for what isn't there. */
export function entryView(entry: LedgerEntry): AcknowledgmentView {
  const reason = reasonOf(entry);
  return {
    ad_response_id: entry.id,
    ad_ack_id: entry.acceptedAtMs === undefined ? null : ackIdOf(entry.id),
    publisher: entry.publisher,
    state: entry.state,
    status: entry.verdict ?? null,
    reason,
    reason_text: textOf(reason),
    last_code: entry.lastCode ?? null,
    provider_error: entry.providerError ?? null,
    size_bytes: entry.sizeBytes ?? null,
    recorded_at: isoTime(entry.recordedAtMs),
    deadline_at: isoTime(entry.deadlineAtMs),
    accepted_at: isoTime(entry.acceptedAtMs),
    queued_at: isoTime(entry.queuedAtMs),
    next_attempt_at: isoTime(entry.nextAttemptAtMs),
    ended_at: isoTime(entry.endedAtMs),
    late: entry.isLate,
    attempts: entry.attempts,
    failed_attempts: entry.failedAttempts,
    provider_ack_id: entry.providerAckId ?? null,
  };
}

/** With its latest attempts, oldest first. */
export function entryViewWithAttempts(entry: LedgerEntry): AcknowledgmentDetail {
  const attempts = entry.attemptLog.map(({ atMs, outcome, code, durationMs }) => {
    return { at: isoTime(atMs), outcome, code, duration_ms: durationMs };
  });
  return { ...entryView(entry), attempt_log: attempts };
}

/** Why it is, or was when it ended, a dead letter. */
function reasonOf({ state, deadReason }: LedgerEntry): string | null {
  const isOrWasDead = state === "dead" || state === "discarded" || state === "expired";
  return isOrWasDead ? (deadReason ?? null) : null;
}

/** A reason of a newer version has no text here. */
function textOf(reason: string | null): string | null {
  const known = DEAD_REASONS.find((candidate) => candidate === reason);
  return known === undefined ? null : DEAD_REASON_TEXTS[known];
}

import type { AcknowledgmentDetail, AcknowledgmentView } from "@adrelay/contract";
import { describeMoment } from "./moments.ts";
import type { Terminal } from "./terminal.ts";

const HEAD = ["AD RESPONSE", "PUBLISHER", "REASON", "CODE", "ATTEMPTS", "DIED"];

export function showDeadLetters(
  terminal: Terminal,
  letters: readonly AcknowledgmentView[],
  nowMs: number,
): void {
  const rows = letters.map((letter) => [
    letter.ad_response_id,
    letter.publisher,
    letter.reason ?? "-",
    letter.last_code ?? "-",
    letter.attempts,
    describeMoment(letter.ended_at, nowMs),
  ]);
  terminal.table(HEAD, rows);
}

/** One acknowledgment: what is known of it, then its attempts. */
export function showAcknowledgment(terminal: Terminal, one: AcknowledgmentDetail, nowMs: number): void {
  const moment = (time: string | null) => (time === null ? null : describeMoment(time, nowMs));
  terminal.facts({
    "ad response": one.ad_response_id,
    "ad ack": one.ad_ack_id,
    publisher: one.publisher,
    state: one.late ? `${one.state} (late)` : one.state,
    verdict: one.status,
    reason: one.reason_text === null ? one.reason : `${one.reason}: ${one.reason_text}`,
    "last code": one.last_code,
    "provider said": one.provider_error,
    "provider's ack": one.provider_ack_id,
    bytes: one.size_bytes,
    recorded: moment(one.recorded_at),
    deadline: moment(one.deadline_at),
    accepted: moment(one.accepted_at),
    queued: moment(one.queued_at),
    "next attempt": moment(one.next_attempt_at),
    ended: moment(one.ended_at),
    attempts: one.attempts,
    retries: one.failed_attempts > 0 ? `${one.failed_attempts} since it was last queued` : null,
  });
  if (one.attempt_log.length > 0) {
    terminal.print("");
    terminal.table(
      ["ATTEMPT AT", "OUTCOME", "CODE", "MS"],
      one.attempt_log.map(({ at, outcome, code, duration_ms }) => [at, outcome, code, duration_ms]),
    );
  }
}

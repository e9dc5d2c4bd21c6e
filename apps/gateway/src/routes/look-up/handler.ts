import type { Ledger, LedgerEntry } from "@adrelay/ledger";
import { addToRequestLog, OVERDUE, sendProblem } from "@adrelay/service-kit";
import type { Call } from "../../endpoint.ts";
import { ackIdOf } from "../../intake/fingerprints.ts";
import { isoTime } from "../iso-time.ts";
import { askLedger, parseIdInPath, sendUnavailable } from "../ledger-answers.ts";

/** GET /api/ad-injection/acknowledgments/{ad_response_id}/ */
export function makeLookUpHandler(ledger: Ledger): (call: Call) => Promise<void> {
  return async ({ publisher, request, response }) => {
    const id = parseIdInPath(request, response);
    if (id === undefined) {
      return;
    }
    addToRequestLog(response, { ad_response_id: id });
    const entry = await askLedger(ledger.find(id));
    if (entry === OVERDUE) {
      sendUnavailable(response);
    } else if (entry === undefined) {
      sendProblem(response, "unknown_ad_response");
    } else if (entry.publisher !== publisher.id) {
      sendProblem(response, "other_publisher");
    } else {
      response.json(viewOf(entry));
    }
  };
}

/** One ad response as its publisher may see it. Times are ISO 8601 in UTC, by Redis' clock; null for not yet. */
function viewOf(entry: LedgerEntry) {
  const isAcknowledged = entry.acceptedAtMs !== undefined;
  return {
    ad_response_id: entry.id,
    ad_ack_id: isAcknowledged ? ackIdOf(entry.id) : null,
    state: entry.state,
    status: entry.verdict ?? null,
    recorded_at: isoTime(entry.recordedAtMs),
    deadline_at: isoTime(entry.deadlineAtMs),
    accepted_at: isoTime(entry.acceptedAtMs),
    next_attempt_at: isoTime(entry.nextAttemptAtMs),
    ended_at: isoTime(entry.endedAtMs),
    late: entry.isLate,
    attempts: entry.attempts,
    provider_ack_id: entry.providerAckId ?? null,
    last_error_code: entry.state === "delivered" ? null : (entry.lastCode ?? null),
  };
}

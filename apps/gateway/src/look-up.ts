import type { AcknowledgmentStatus } from "@adrelay/contract";
import { addToRequestLog, OVERDUE, sendProblem } from "@adrelay/service-kit";
import {
  ackIdOf,
  acknowledgedOf,
  type LedgerEntry,
  lastCodeOf,
  openTurnOf,
  type Store,
} from "@adrelay/store";
import type { Call } from "./public-app.ts";
import {
  askStore,
  findingViewOf,
  isoTime,
  parseIdInPath,
  STATE_HEADER,
  sendUnavailable,
} from "./store-answers.ts";

/** GET /api/ad-injection/acknowledgments/{ad_response_id}/ */
export function makeLookUpHandler(
  acknowledgments: Pick<Store["acknowledgments"], "find">,
): (call: Call) => Promise<void> {
  return async ({ publisher, request, response }) => {
    const id = parseIdInPath(request, response);
    if (id === undefined) {
      return;
    }
    addToRequestLog(response, { ad_response_id: id });
    const entry = await askStore(acknowledgments.find(id));
    if (entry === OVERDUE) {
      sendUnavailable(response);
    } else if (entry === undefined) {
      sendProblem(response, "unknown_ad_response");
    } else if (entry.publisher !== publisher.id) {
      sendProblem(response, "other_publisher");
    } else {
      response.set(STATE_HEADER, entry.state).json(viewOf(entry));
    }
  };
}

/**
 * One ad response as its publisher may see it. Times are ISO 8601 in UTC, by Redis' clock. Null if it has not happened
 * yet.
 */
function viewOf(entry: LedgerEntry): AcknowledgmentStatus {
  const acknowledged = acknowledgedOf(entry);
  return {
    ad_response_id: entry.id,
    ad_ack_id: acknowledged === undefined ? null : ackIdOf(entry.id),
    state: entry.state,
    status: entry.state === "delivered" ? (entry.verdict ?? null) : null,
    recorded_at: isoTime(entry.injection?.recordedAtMs),
    deadline_at: isoTime(entry.injection?.deadlineAtMs),
    accepted_at: isoTime(acknowledged?.acceptedAtMs),
    next_attempt_at: isoTime(entry.state === "queued" ? entry.nextAttemptAtMs : undefined),
    ended_at: isoTime("endedAtMs" in entry ? entry.endedAtMs : undefined),
    late: acknowledged?.isLate ?? false,
    attempts: acknowledged?.attempts ?? 0,
    provider_ack_id: entry.state === "delivered" ? (entry.providerAckId ?? null) : null,
    last_error_code: entry.state === "delivered" ? null : (lastCodeOf(entry) ?? null),
    turn: openTurnOf(entry) ?? null,
    finding: findingViewOf(acknowledged?.finding),
  };
}

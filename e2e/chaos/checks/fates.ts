/** What became of each acknowledgment. */
import type { AdEvidence, Evidence } from "../evidence.ts";
import type { LogWatch } from "../log-watch.ts";
import { opinionOf } from "../provider-books.ts";
import { type Check, checkAds } from "./check.ts";

const isAccepted = ({ lane }: AdEvidence) => lane !== undefined && lane.accepted.size > 0;

export function checkFates({ ads }: Evidence, { untracked }: LogWatch): readonly Check[] {
  return [
    checkAds("each accepted acknowledgment has ended", ads, isAccepted, endOf),
    checkAds("delivered is what the provider has taken", ads, isBookedOrTaken, disagreement),
    checkAds("of two texts one at most is accepted", ads, isAccepted, ({ lane }) =>
      (lane?.accepted.size ?? 0) > 1 || (lane?.ackIds.size ?? 0) > 1
        ? `accepted ${lane?.accepted.size} texts with ${lane?.ackIds.size} ids`
        : undefined,
    ),
    checkAds(
      "look-ups tell what the ledger has",
      ads,
      ({ entry, view }) => (entry ?? view) !== undefined,
      lookUpFault,
    ),
    checkAds("never acknowledged is missed", ads, isNeverAcknowledged, (ad) => missedFault(ad, untracked)),
    checkAds(
      "missed was never acknowledged",
      ads,
      ({ entry }) => entry?.state === "missed",
      ({ lane }) =>
        (lane?.tries ?? 0) > 0 ? `acknowledged, answers ${[...(lane?.answers ?? [])].join(", ")}` : undefined,
    ),
    checkAds("unknown to the ledger only where a log line says so", ads, isUnknown, (ad) =>
      unknownFault(ad, untracked),
    ),
  ];
}

function endOf({ id, entry }: AdEvidence): string | undefined {
  const opinion = opinionOf(id);
  switch (entry?.state) {
    case "delivered":
      return opinion.kind === "takes" ? undefined : "delivered, though the provider doesn't take it";
    case "refused":
      return opinion.kind === "refuses" ? undefined : "refused, though the provider refuses it not";
    case "dead":
      return opinion.kind === "rejects" && entry.death.reason === `http_${opinion.status}`
        ? undefined
        : `dead because of ${entry.death.reason ?? "nothing"}`;
    default:
      return `accepted, and ${entry?.state ?? "unknown to the ledger"}`;
  }
}

const isBookedOrTaken = ({ entry, isTaken }: AdEvidence) => entry?.state === "delivered" || isTaken;

function disagreement({ entry, isTaken }: AdEvidence): string | undefined {
  return entry?.state === "delivered" && isTaken
    ? undefined
    : `${isTaken ? "taken" : "not taken"} by the provider, ${entry?.state ?? "unknown"} in the ledger`;
}

function lookUpFault({ entry, view, posts }: AdEvidence): string | undefined {
  if (view?.state !== entry?.state) {
    return `looked up as ${String(view?.state)}, ${entry?.state} in the ledger`;
  }
  const key = posts[0]?.idempotencyKey;
  return key === undefined || key === view?.ackId
    ? undefined
    : `posted as ${key}, looked up as ${String(view?.ackId)}`;
}

const isNeverAcknowledged = ({ lane }: AdEvidence) => lane?.origin === "filled" && lane.tries === 0;

/**
 * An injection that went out while Redis didn't answer is not on the books: its log line says so. Such a
 * write may have arrived all the same; then it is missed, as it should be.
 */
function missedFault({ id, entry }: AdEvidence, untracked: ReadonlySet<string>): string | undefined {
  return entry?.state === "missed" || (entry === undefined && untracked.has(id))
    ? undefined
    : (entry?.state ?? "unknown, without a log line that says so");
}

const isUnknown = ({ entry, lane }: AdEvidence) =>
  entry !== undefined && entry.injection === undefined && lane?.origin !== "unknown";

/** The ledger met it by its acknowledgment: only if its injection could not be booked. */
function unknownFault({ id }: AdEvidence, untracked: ReadonlySet<string>): string | undefined {
  return untracked.has(id)
    ? undefined
    : "acknowledged as unknown, though its injection was answered in order";
}

/** How each acknowledgment and each ad ended. */
import { acknowledgedOf } from "@adrelay/store";
import type { AdEvidence, Evidence } from "../evidence.ts";
import type { LogWatch } from "../log-watch.ts";
import { ruleFor } from "../provider-records.ts";
import { type Check, checkAds } from "./check.ts";

const isAccepted = ({ publisherRecord }: AdEvidence) =>
  publisherRecord !== undefined && publisherRecord.accepted.size > 0;

const isErased = ({ erasure }: AdEvidence) => erasure === "confirmed";

/** After an erasure nobody knows which text was accepted, so any text counts as a repeat. */
const isKept = (ad: AdEvidence) => isAccepted(ad) && ad.erasure === undefined;

const isAnswered = ({ publisherRecord }: AdEvidence) => (publisherRecord?.answers.size ?? 0) > 0;

export function checkOutcomes({ ads }: Evidence, { untracked }: LogWatch): readonly Check[] {
  return [
    checkAds("each accepted acknowledgment has ended", ads, isAccepted, endFault),
    checkAds("exactly what the provider counted is delivered", ads, isDeliveredOrCounted, deliveryFault),
    checkAds("what was erased has no trace of its text", ads, isErased, erasureFault),
    checkAds("at most one text per id is accepted", ads, isKept, ({ publisherRecord }) =>
      (publisherRecord?.accepted.size ?? 0) > 1 || (publisherRecord?.ackIds.size ?? 0) > 1
        ? `accepted ${publisherRecord?.accepted.size} texts with ${publisherRecord?.ackIds.size} ids`
        : undefined,
    ),
    checkAds("404 is told only for what provider and relay don't know", ads, isAnswered, unknownAnswerFault),
    checkAds(
      "look-ups agree with the ledger",
      ads,
      ({ entry, view }) => (entry ?? view) !== undefined,
      lookUpFault,
    ),
    checkAds("each ad never acknowledged is missed", ads, isNeverAcknowledged, (ad) =>
      missedFault(ad, untracked),
    ),
    checkAds(
      "each missed ad was never acknowledged",
      ads,
      ({ entry }) => entry?.state === "missed",
      ({ publisherRecord }) =>
        (publisherRecord?.sendCount ?? 0) > 0
          ? `acknowledged, answers ${[...(publisherRecord?.answers ?? [])].join(", ")}`
          : undefined,
    ),
    checkAds("each injection without a record has its log line", ads, isUnknown, (ad) =>
      unknownFault(ad, untracked),
    ),
  ];
}

function erasureFault({ entry }: AdEvidence): string | undefined {
  const kept = entry === undefined ? undefined : acknowledgedOf(entry)?.textHash;
  const isEnded = entry?.state === "discarded" || entry?.state === "delivered" || entry?.state === "refused";
  return isEnded && kept === undefined
    ? undefined
    : `erased, but ${entry?.state ?? "unknown to the ledger"}${kept === undefined ? "" : " with a fingerprint"}`;
}

function endFault({ id, entry, erasure }: AdEvidence): string | undefined {
  const rule = ruleFor(id);
  switch (entry?.state) {
    case "discarded":
      return erasure === undefined ? "discarded, although nobody erased it" : undefined;
    case "delivered":
      return rule.kind === "count" ? undefined : "delivered, although the provider never counts it";
    case "refused":
      return rule.kind === "refuse" ? undefined : "refused, although the provider never refuses it";
    case "dead":
      return rule.kind === "reject" && entry.death.reason === `http_${rule.status}`
        ? undefined
        : `dead because of ${entry.death.reason ?? "nothing"}`;
    default:
      return `accepted, but ${entry?.state ?? "unknown to the ledger"}`;
  }
}

function unknownAnswerFault({ id, entry, publisherRecord }: AdEvidence): string | undefined {
  const rule = ruleFor(id);
  const isUnknown = rule.kind === "reject" && rule.status === 404 && entry?.injection === undefined;
  return publisherRecord?.answers.has(404) === true && !isUnknown ? "told to be unknown" : undefined;
}

const isDeliveredOrCounted = ({ entry, isCounted }: AdEvidence) => entry?.state === "delivered" || isCounted;

/** An attempt may have been taken without an answer before the erasure, and then nobody will learn of it. */
function deliveryFault({ entry, isCounted, erasure }: AdEvidence): string | undefined {
  const isErasedAfter = entry?.state === "discarded" && erasure !== undefined;
  return (entry?.state === "delivered" && isCounted) || isErasedAfter
    ? undefined
    : `${isCounted ? "counted" : "not counted"} by the provider, ${entry?.state ?? "unknown"} in the ledger`;
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

const isNeverAcknowledged = ({ publisherRecord }: AdEvidence) =>
  publisherRecord?.origin === "filled" && publisherRecord.sendCount === 0;

/**
 * An injection that is answered while Redis doesn't answer has no entry, and a log line says so. Its write may
 * still have reached Redis. Then it is missed, as it should be.
 */
function missedFault({ id, entry }: AdEvidence, untracked: ReadonlySet<string>): string | undefined {
  return entry?.state === "missed" || (entry === undefined && untracked.has(id))
    ? undefined
    : (entry?.state ?? "unknown to the ledger, without a log line that says so");
}

const isUnknown = ({ entry, publisherRecord }: AdEvidence) =>
  entry !== undefined && entry.injection === undefined && publisherRecord?.origin !== "unknown";

/** An entry may lack its injection only if a log line says that the injection was not recorded. */
function unknownFault({ id }: AdEvidence, untracked: ReadonlySet<string>): string | undefined {
  return untracked.has(id)
    ? undefined
    : "acknowledged as unknown, although no log line says that its injection was not recorded";
}

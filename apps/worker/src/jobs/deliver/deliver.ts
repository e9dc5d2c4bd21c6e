/**
 * One attempt at delivering an acknowledgment: ask the ledger, post, book, and tell the queue.
 *
 * - The ledger is read at the start of every attempt; in a terminal state nothing is posted (invariant 3).
 * - What came of the attempt is booked before the queue hears of it (invariant 3). If that fails, the
 *   attempt is made again, and the provider knows it by its idempotency key (invariant 4).
 * - An attempt that comes before its time (its process died between booking and telling the queue) goes
 *   back to wait.
 */
import type { DeliveryJob, OutcomeNotice, PublisherId } from "@adrelay/contract";
import {
  classifyDelivery,
  type DeliveryOutcome,
  outcomeLabelOf,
  type ProviderReply,
  planRetry,
  publicErrorOf,
} from "@adrelay/core";
import type { AcceptResult, BookedCode, Ledger, LedgerEntry, Settlement } from "@adrelay/ledger";
import type { ProviderAccount, ProviderClient } from "@adrelay/provider";
import type { DeliveryQueue, HandlerOutcome } from "@adrelay/queue";
import type { Logger } from "pino";
import type { WorkerMetrics } from "../../worker-metrics.ts";

export interface DeliverDeps {
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly provider: ProviderClient;
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
  /** The provider of a publisher; undefined for one that is not configured (any more). */
  accountOf(publisher: PublisherId): ProviderAccount | undefined;
  readonly timeoutMs: number;
  readonly scheduleMs: readonly number[];
  readonly ageMaxMs: number;
  /** Uniform in [0, 1). */
  random(): number;
}

export type Deliver = (job: DeliveryJob, textHash: string) => Promise<HandlerOutcome>;

/** Waits shorter than this are not worth another turn through the queue. */
const EARLY_TOLERANCE_MS = 50;

/** An entry whose attempt is due, at the ledger's present time. */
interface DueAttempt {
  readonly kind: "due";
  readonly entry: LedgerEntry;
  readonly nowMs: number;
}

export function makeDeliver(deps: DeliverDeps): Deliver {
  return async (job, textHash) => {
    const { adResponseId: id, publisher } = job;
    const payload = deps.queue.payloadRef(id);
    const begun = beginAttempt(await deps.ledger.accept({ id, publisher, textHash, payload }));
    if (begun.kind !== "due") {
      deps.log.info({
        event: "attempt_skipped",
        ad_response_id: id,
        publisher,
        request_id: job.requestId,
        ...begun,
      });
      return begun.outcome;
    }
    const startedAtMs = performance.now();
    const reply = await post(deps, job);
    const durationMs = performance.now() - startedAtMs;
    const settlement = decideSettlement(deps, { job, begun, reply, durationMs });
    const booked = await deps.ledger.settle(settlement);
    report(deps, { job, begun, settlement, booked });
    return toHandlerOutcome(settlement, booked);
  };
}

/** Whether the attempt is to be made, by what the ledger says. */
function beginAttempt(
  accepted: AcceptResult,
): DueAttempt | { readonly kind: "skip"; readonly why: string; readonly outcome: HandlerOutcome } {
  switch (accepted.kind) {
    case "accepted":
    case "accepted_late":
    case "accepted_unknown":
      return { kind: "due", entry: accepted.entry, nowMs: accepted.nowMs };
    case "repeat":
      return beginRepeat(accepted.entry, accepted.nowMs);
    // Nobody was told 2xx for this job: its request ended with an error.
    case "conflict":
    case "not_acknowledgeable":
    case "other_publisher":
    case "payload_missing":
      return { kind: "skip", why: accepted.kind, outcome: { kind: "finished" } };
    default:
      return accepted satisfies never;
  }
}

function beginRepeat(entry: LedgerEntry, nowMs: number): ReturnType<typeof beginAttempt> {
  switch (entry.state) {
    case "queued": {
      const earlyMs = (entry.nextAttemptAtMs ?? 0) - nowMs;
      return earlyMs > EARLY_TOLERANCE_MS
        ? { kind: "skip", why: "early", outcome: { kind: "again", delayMs: earlyMs } }
        : { kind: "due", entry, nowMs };
    }
    case "dead":
      return {
        kind: "skip",
        why: entry.state,
        outcome: { kind: "dead", reason: entry.deadReason ?? "dead" },
      };
    case "awaiting":
    case "missed":
    case "delivered":
    case "refused":
    case "discarded":
    case "expired":
    case "unacknowledgeable":
    case "abandoned":
      return { kind: "skip", why: entry.state, outcome: { kind: "finished" } };
    default:
      return entry.state satisfies never;
  }
}

async function post(
  { provider, accountOf, metrics, timeoutMs }: DeliverDeps,
  job: DeliveryJob,
): Promise<ProviderReply> {
  const account = accountOf(job.publisher);
  if (account === undefined) {
    // Like a wrong key: the fault is in the settings, and the acknowledgment waits until they are mended.
    return { kind: "answered", status: 401, body: undefined, retryAfter: undefined };
  }
  const startedAtMs = performance.now();
  const { body, requestId, adAckId } = job;
  const reply = await provider.acknowledge({ account, body, requestId, adAckId, timeoutMs });
  const outcome = outcomeLabelOf(reply);
  metrics.providerDuration.observe(
    { operation: "acknowledge", outcome },
    (performance.now() - startedAtMs) / 1000,
  );
  return reply;
}

interface MadeAttempt {
  readonly job: DeliveryJob;
  readonly begun: DueAttempt;
  readonly reply: ProviderReply;
  readonly durationMs: number;
}

function decideSettlement(deps: DeliverDeps, { job, begun, reply, durationMs }: MadeAttempt): Settlement {
  const outcome = classifyDelivery(reply, Date.now());
  const base = {
    id: job.adResponseId,
    code: outcome.code,
    providerAckId: undefined,
    durationMs,
    delayMs: 0,
    attemptsBefore: begun.entry.attempts,
  };
  const decided = withRetryPlan(deps, begun, outcome, durationMs);
  const settled = { ...base, ...decided, ...(decided.event === "die" ? deathOf(job, reply) : {}) };
  return { ...settled, notify: noticeFor(job, settled) };
}

/** What operators are shown of a dead letter besides its reason. */
function deathOf(job: DeliveryJob, reply: ProviderReply): Pick<Settlement, "death"> {
  return { death: { sizeBytes: Buffer.byteLength(job.body), providerError: publicErrorOf(reply) } };
}

type Decided = Pick<Settlement, "event" | "label"> & Partial<Pick<Settlement, "providerAckId" | "delayMs">>;

function withRetryPlan(
  deps: DeliverDeps,
  begun: DueAttempt,
  outcome: DeliveryOutcome,
  durationMs: number,
): Decided {
  switch (outcome.kind) {
    case "delivered":
      return { event: "deliver", label: outcome.verdict ?? "unknown", providerAckId: outcome.providerAckId };
    case "refused":
      return { event: "refuse", label: "" };
    case "dead":
      return { event: "die", label: outcome.reason };
    case "retry": {
      const { entry, nowMs } = begun;
      const plan = planRetry({
        scheduleMs: deps.scheduleMs,
        failedAttempts: entry.failedAttempts + 1,
        ageMs: nowMs + durationMs - (entry.queuedAtMs ?? nowMs),
        ageMaxMs: deps.ageMaxMs,
        pace: outcome.pace,
        retryAfterMs: outcome.retryAfterMs,
        random: deps.random(),
      });
      return plan.kind === "retry"
        ? { event: "retry", label: "", delayMs: plan.delayMs }
        : { event: "die", label: plan.reason };
    }
    default:
      return outcome satisfies never;
  }
}

/** What the gateway that waits is told, in the same step that books it. */
function noticeFor(job: DeliveryJob, settled: Omit<Settlement, "notify">): Settlement["notify"] {
  if (job.replyTo === undefined) {
    return undefined;
  }
  const { event, label, code, providerAckId, delayMs } = settled;
  const notice: OutcomeNotice = {
    adResponseId: job.adResponseId,
    publisher: job.publisher,
    event,
    code,
    delayMs,
    ...(label === "ok" || label === "no_ad_used" ? { verdict: label } : {}),
    ...(providerAckId === undefined ? {} : { providerAckId }),
  };
  return { channel: job.replyTo, message: JSON.stringify(notice) };
}

/** Wait before the ledger is asked again about an attempt that it did not book. */
const ASK_AGAIN_MS = 1000;

function toHandlerOutcome({ event, label, delayMs }: Settlement, booked: BookedCode): HandlerOutcome {
  switch (event) {
    case "deliver":
    case "refuse":
      return { kind: "finished" };
    case "retry":
      return { kind: "again", delayMs };
    case "die":
      // Not booked: it was before, or the letter was replayed meanwhile. The ledger knows, so it is asked again.
      return booked === "booked" ? { kind: "dead", reason: label } : { kind: "again", delayMs: ASK_AGAIN_MS };
    default:
      return event satisfies never;
  }
}

/** The one line of an attempt, and its metrics. */
function report(
  { log, metrics }: DeliverDeps,
  {
    job,
    begun,
    settlement,
    booked,
  }: { job: DeliveryJob; begun: DueAttempt; settlement: Settlement; booked: BookedCode },
): void {
  const { event, label, code, durationMs, delayMs } = settlement;
  const { entry, nowMs } = begun;
  metrics.attempts.inc({ outcome: event });
  if (event === "deliver" && booked === "booked" && entry.queuedAtMs !== undefined) {
    metrics.lag.observe((nowMs + durationMs - entry.queuedAtMs) / 1000);
  }
  const isDegraded = event === "retry" || event === "die";
  log[isDegraded ? "warn" : "info"]({
    event: "attempt",
    outcome: event,
    code,
    label,
    booked,
    ad_response_id: job.adResponseId,
    ad_ack_id: job.adAckId,
    publisher: job.publisher,
    request_id: job.requestId,
    attempt: entry.attempts + 1,
    duration_ms: Math.round(durationMs),
    next_attempt_ms: event === "retry" ? delayMs : undefined,
  });
}

/**
 * One attempt at delivering an acknowledgment: ask the ledger, ask the gate, post, book, tell the queue.
 *
 * - The ledger is read at the start of every attempt; in a terminal state nothing is posted (invariant 3).
 * - While its provider is known to be away, or takes no more at once, an acknowledgment waits: no attempt is
 *   made, booked or counted.
 * - What came of the attempt is booked before the queue hears of it (invariant 3). If that fails, the
 *   attempt is made again, and the provider knows it by its idempotency key (invariant 4).
 * - An attempt that comes before its time (its process died between booking and telling the queue) goes
 *   back to wait.
 */
import { type DeliveryJob, traceHeadersOf } from "@adrelay/contract";
import {
  classifyDelivery,
  judgeProvider,
  outcomeLabelOf,
  type ProviderReply,
  publicErrorOf,
} from "@adrelay/core";
import type { BookedCode, Ledger, Parking, Settlement } from "@adrelay/ledger";
import type { ProviderAccount, ProviderClient } from "@adrelay/provider";
import type { HandlerOutcome, WorkerOptions } from "@adrelay/queue";
import { exemplarOf, type Tracing } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { Gatekeeper } from "../../gates/gatekeeper.ts";
import type { WorkerMetrics } from "../../worker-metrics.ts";
import { describeAttempt, startAttemptSpan, type TracedAttempt, traceIdsOf } from "./attempt-span.ts";
import { beginAttempt, type DueAttempt } from "./begin-attempt.ts";
import { decideSettlement, noticeFor, PARKED_MAX_MS, type RetryRules } from "./settle-attempt.ts";

export interface DeliverDeps extends RetryRules {
  readonly ledger: Ledger;
  readonly provider: ProviderClient;
  readonly gatekeeper: Gatekeeper;
  readonly metrics: WorkerMetrics;
  readonly log: Logger;
  readonly tracing: Tracing;
  readonly timeoutMs: number;
}

export type Deliver = WorkerOptions["handle"];

export function makeDeliver(deps: DeliverDeps): Deliver {
  return async (job, queued) => {
    const { adResponseId: id, publisher } = job;
    const begun = beginAttempt(await deps.ledger.begin({ id, publisher, ...queued }));
    if (begun.kind === "due") {
      return attemptWhenAdmitted(deps, job, begun);
    }
    const { why, outcome } = begun;
    const ids = { ad_response_id: id, publisher, request_id: job.requestId };
    deps.log.info({ event: "attempt_skipped", ...ids, why, outcome: outcome.kind });
    return outcome;
  };
}

async function attemptWhenAdmitted(
  deps: DeliverDeps,
  job: DeliveryJob,
  begun: DueAttempt,
): Promise<HandlerOutcome> {
  const { publisher } = job;
  const group = deps.gatekeeper.groupOf(publisher);
  if (group === undefined) {
    const span = startAttemptSpan(deps.tracing, job);
    const judged = judgeCall({ job, begun, span, isProbe: false }, { reply: UNCONFIGURED, durationMs: 0 });
    return settleAttempt(deps, { ...judged, isProviderAway: false }).finally(() => span.end());
  }
  const admission = await deps.gatekeeper.admit({ publisher, id: job.adResponseId });
  if (admission.kind === "wait") {
    deps.log.debug({
      event: "attempt_waits",
      why: admission.why,
      ad_response_id: job.adResponseId,
      publisher,
    });
    const { nextAttemptAtMs, queuedAtMs = begun.nowMs } = begun.entry;
    const notify = admission.why === "circuit" ? noticeOfWaiting(job) : undefined;
    return park(deps, { job, place: { kind: "by_time", dueAtMs: nextAttemptAtMs ?? queuedAtMs }, notify });
  }
  const span = startAttemptSpan(deps.tracing, job);
  const attempt = { job, begun, span, isProbe: admission.isProbe };
  return makeAttempt(deps, attempt, { account: group.account, free: admission.free }).finally(() =>
    span.end(),
  );
}

async function makeAttempt(
  deps: DeliverDeps,
  attempt: BegunAttempt,
  { account, free }: { readonly account: ProviderAccount; readonly free: () => void },
): Promise<HandlerOutcome> {
  const call = await post(deps, attempt, account).finally(free);
  const judged = judgeCall(attempt, call);
  return settleAttempt(deps, { ...judged, isProviderAway: await learn(deps, judged) });
}

/** Like a wrong key: the fault is in the settings, and the acknowledgment waits until they are mended. */
const UNCONFIGURED: ProviderReply = {
  kind: "answered",
  status: 401,
  body: undefined,
  retryAfter: undefined,
};

interface Call {
  readonly reply: ProviderReply;
  readonly durationMs: number;
}

async function post(
  { provider, metrics, tracing, timeoutMs }: DeliverDeps,
  { job: { body, requestId, adAckId }, span: { context } }: BegunAttempt,
  account: ProviderAccount,
): Promise<Call> {
  const startedAtMs = performance.now();
  const span = tracing.startSpan({ name: "provider acknowledge", kind: "client", parent: context });
  const traceHeaders = traceHeadersOf(span.context);
  const reply = await provider.acknowledge({ account, body, requestId, traceHeaders, adAckId, timeoutMs });
  const durationMs = performance.now() - startedAtMs;
  const outcome = outcomeLabelOf(reply);
  metrics.providerDuration.observe({ operation: "acknowledge", outcome }, durationMs / 1000);
  span.set({ "adrelay.outcome": outcome });
  span.end({ isFault: reply.kind === "failed" || reply.status >= 500 });
  return { reply, durationMs };
}

type JudgedAttempt = Omit<TracedAttempt, "isProviderAway">;
type BegunAttempt = Omit<JudgedAttempt, "outcome" | "providerError" | "durationMs">;

function judgeCall(begun: BegunAttempt, { reply, durationMs }: Call): JudgedAttempt {
  return {
    ...begun,
    outcome: classifyDelivery(reply, Date.now()),
    providerError: publicErrorOf(reply),
    durationMs,
  };
}

async function settleAttempt(deps: DeliverDeps, made: TracedAttempt): Promise<HandlerOutcome> {
  const { settlement, waitsForProvider } = decideSettlement(deps, made);
  const booked = await deps.ledger.settle(settlement);
  report(deps, { made, settlement, booked });
  // At the end, so that one that always fails doesn't keep its provider's circuit open.
  return waitsForProvider
    ? park(deps, { job: made.job, place: { kind: "last" }, notify: undefined })
    : toHandlerOutcome(settlement, booked);
}

/** Whether its provider is known to be away now. The attempt is booked in any case. */
async function learn(
  { gatekeeper, log }: DeliverDeps,
  { job, outcome, isProbe }: JudgedAttempt,
): Promise<boolean> {
  try {
    return (await gatekeeper.learn(job.publisher, judgeProvider(outcome), isProbe)) === "open";
  } catch (err) {
    log.warn({ event: "circuit_not_told", publisher: job.publisher, err });
    return isProbe;
  }
}

/**
 * Puts the acknowledgment among those that wait for their provider. First the note, then the queue: a crash in
 * between leaves a job that stalls and is run again, and not one that nobody brings back.
 */
async function park(
  { gatekeeper }: DeliverDeps,
  { job, place, notify }: Pick<Parking, "place" | "notify"> & { readonly job: DeliveryJob },
): Promise<HandlerOutcome> {
  await gatekeeper.park({ member: { publisher: job.publisher, id: job.adResponseId }, place, notify });
  return { kind: "again", delayMs: PARKED_MAX_MS };
}

/** Told to a waiting gateway: there will be no outcome soon. */
function noticeOfWaiting(job: DeliveryJob): Settlement["notify"] {
  return noticeFor(job, {
    event: "retry",
    label: "",
    code: "circuit_open",
    providerAckId: undefined,
    delayMs: PARKED_MAX_MS,
  });
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

/** The one line of an attempt, its metrics and its span. */
function report(
  { log, metrics }: DeliverDeps,
  { made, settlement, booked }: { made: TracedAttempt; settlement: Settlement; booked: BookedCode },
): void {
  const { event, label, code, durationMs, delayMs } = settlement;
  const { job, isProbe, begun } = made;
  const { entry, nowMs } = begun;
  describeAttempt(made, settlement);
  metrics.attempts.inc({ outcome: event });
  if (event === "deliver" && booked === "booked" && entry.queuedAtMs !== undefined) {
    const value = (nowMs + durationMs - entry.queuedAtMs) / 1000;
    metrics.lag.observe({ value, exemplarLabels: exemplarOf(made.span) });
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
    ...traceIdsOf(made),
    attempt: entry.attempts + 1,
    probe: isProbe,
    duration_ms: Math.round(durationMs),
    next_attempt_ms: event === "retry" ? delayMs : undefined,
  });
}

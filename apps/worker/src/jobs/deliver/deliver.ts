/**
 * One attempt at delivering an acknowledgment: ask the ledger, ask the gate, post, book, tell the queue.
 *
 * - The ledger is read at the start of every attempt, or in the step that fetched its job, a second ago at most; in a
 *   terminal state nothing is posted (invariant 3).
 * - While its provider is known to be away, or takes no more at once, an acknowledgment waits: no attempt is
 *   made, booked or counted.
 * - What came of the attempt is booked before the queue hears of it (invariant 3); the provider's last word is in the
 *   step that ends the job (finish-attempt.ts). If that fails, the attempt is made again, and the provider knows it
 *   by its idempotency key (invariant 4).
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
import type { BookedCode, LastWord, Ledger, Parking, Settlement, StandingLook } from "@adrelay/ledger";
import type { ProviderAccount, ProviderClient } from "@adrelay/provider";
import type { HandlerOutcome, WorkerOptions } from "@adrelay/queue";
import type { Span, Tracing } from "@adrelay/service-kit";
import type { Gatekeeper } from "../../gates/gatekeeper.ts";
import { startAttemptSpan, type TracedAttempt } from "./attempt-span.ts";
import { beginAttempt, type DueAttempt, standingSeen } from "./begin-attempt.ts";
import type { EndedAttempt } from "./finish-attempt.ts";
import type { Insistence } from "./insistence.ts";
import { type ReportDeps, reportAttempt } from "./report-attempt.ts";
import { decideSettlement, noticeFor, PARKED_MAX_MS, type RetryRules } from "./settle-attempt.ts";

export interface DeliverDeps extends RetryRules, ReportDeps {
  readonly ledger: Ledger;
  readonly insistence: Insistence;
  readonly provider: ProviderClient;
  readonly gatekeeper: Gatekeeper;
  readonly tracing: Tracing;
  readonly timeoutMs: number;
}

export type Deliver = WorkerOptions<EndedAttempt, StandingLook>["handle"];
type Outcome = HandlerOutcome<EndedAttempt>;

export function makeDeliver(deps: DeliverDeps): Deliver {
  return async (job, queued, look) => {
    const { adResponseId: id, publisher } = job;
    const seen = standingSeen(look, publisher, performance.now());
    const begun = beginAttempt(seen ?? (await deps.ledger.begin({ id, publisher, ...queued })));
    if (begun.kind === "due") {
      return attemptWhenAdmitted(deps, job, begun);
    }
    const { why, outcome } = begun;
    const ids = { ad_response_id: id, publisher, request_id: job.requestId };
    deps.log.info({ event: "attempt_skipped", ...ids, why, outcome: outcome.kind });
    return outcome;
  };
}

async function attemptWhenAdmitted(deps: DeliverDeps, job: DeliveryJob, begun: DueAttempt): Promise<Outcome> {
  const { publisher } = job;
  const group = deps.gatekeeper.groupOf(publisher);
  if (group === undefined) {
    const span = startAttemptSpan(deps.tracing, job);
    const judged = judgeCall({ job, begun, span, isProbe: false }, { reply: UNCONFIGURED, durationMs: 0 });
    return endingOnFault(span, settleAttempt(deps, { ...judged, isProviderAway: false }));
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
  return endingOnFault(span, makeAttempt(deps, attempt, { account: group.account, free: admission.free }));
}

/** Otherwise a span ends once its attempt is booked. */
async function endingOnFault(span: Span, attempt: Promise<Outcome>): Promise<Outcome> {
  try {
    return await attempt;
  } catch (error) {
    span.end();
    throw error;
  }
}

async function makeAttempt(
  deps: DeliverDeps,
  attempt: BegunAttempt,
  { account, free }: { readonly account: ProviderAccount; readonly free: () => void },
): Promise<Outcome> {
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

async function settleAttempt(deps: DeliverDeps, made: TracedAttempt): Promise<Outcome> {
  const decided = decideSettlement(deps, made);
  const settlement: LastWord | OpenWord = decided.settlement;
  if (isLastWord(settlement)) {
    return { kind: "finished", booking: { made, settlement } };
  }
  const booked = await deps.insistence.insist(() => deps.ledger.settle(settlement));
  reportAttempt(deps, { made, settlement }, booked);
  // At the end, so that one that always fails doesn't keep its provider's circuit open.
  return decided.waitsForProvider
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
): Promise<Outcome> {
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

/** What goes on, or dies. */
type OpenWord = Settlement & { readonly event: Exclude<Settlement["event"], LastWord["event"]> };

function isLastWord(settlement: LastWord | OpenWord): settlement is LastWord {
  return settlement.event === "deliver" || settlement.event === "refuse";
}

function toHandlerOutcome({ event, label, delayMs }: OpenWord, booked: BookedCode): Outcome {
  switch (event) {
    case "retry":
      return { kind: "again", delayMs };
    case "die":
      // Not booked: it was before, or the letter was replayed meanwhile. The ledger knows, so it is asked again.
      return booked === "booked" ? { kind: "dead", reason: label } : { kind: "again", delayMs: ASK_AGAIN_MS };
    default:
      return event satisfies never;
  }
}

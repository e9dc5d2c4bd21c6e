/**
 * One attempt at delivering an acknowledgment: ask the circuit breaker, post, classify, decide. The store began it, books the
 * outcome and ends the job (packages/store/src/delivery).
 *
 * 1. While the breaker isn't closed, or this worker has no free slot or no room for a large body, an acknowledgment may be
 *    parked. So is one whose publisher is gone from the settings. Then no attempt is made, booked or counted.
 * 2. If booking the outcome fails, the attempt is made again, and the provider knows it by its idempotency key (invariant 4).
 * 3. The body is only referenced while it is posted: its bytes are given back after that.
 */
import { parseTraceContext, traceHeadersOf } from "@adrelay/contract";
import {
  classifyDelivery,
  type DeliveryOutcome,
  judgeProvider,
  type ProviderHealth,
  type ProviderReply,
  publicErrorOf,
} from "@adrelay/core";
import { outcomeLabelOf, type ProviderClient, type SharedAccount } from "@adrelay/provider";
import type { Span, Tracing } from "@adrelay/service-kit";
import {
  type AttemptResult,
  type DueAttempt,
  type JobHead,
  PARKED_MAX_MS,
  type Settlement,
} from "@adrelay/store";
import type { Logger } from "pino";
import type { Admission, BreakerAccount, CircuitBreakers } from "./circuit-breakers.ts";
import { decideSettlement, notificationFor, type RetryRules } from "./decide-settlement.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

export interface AttemptDeps extends RetryRules {
  readonly provider: Pick<ProviderClient, "acknowledge">;
  readonly breakers: CircuitBreakers;
  readonly metrics: WorkerMetrics;
  readonly tracing: Tracing;
  readonly log: Logger;
  readonly timeoutMs: number;
}

/** Makes attempts for `deliveries.start`. */
export function makeAttempt(deps: AttemptDeps): (due: DueAttempt) => Promise<AttemptResult> {
  return async (due) => {
    const { job, payload } = due;
    const account = deps.breakers.accountOf(job.publisher);
    if (account === undefined) {
      return park(deps, due, { account: undefined, why: "publisher_gone" });
    }
    // Kept for the whole attempt: the publisher may get another one meanwhile.
    const { shared } = account;
    const admission = await deps.breakers.admit(
      account,
      { publisher: job.publisher, id: job.adResponseId },
      payload.bytesToLoad,
    );
    if (admission.kind === "wait") {
      return park(deps, due, { account: shared.id, why: admission.why });
    }
    const span = startAttemptSpan(deps.tracing, job);
    const attempt = { due, span, isProbe: admission.isProbe, account };
    try {
      const call = await post(deps, attempt, shared);
      if (call === undefined) {
        admission.free();
        span.end();
        return { kind: "payload_gone" };
      }
      admission.free(loadOf(call.health));
      return await settle(deps, attempt, call);
    } catch (error) {
      admission.free();
      span.end();
      throw error;
    }
  };
}

interface StartedAttempt {
  readonly due: DueAttempt;
  readonly span: Span;
  readonly isProbe: boolean;
  readonly account: BreakerAccount;
}

interface Call {
  readonly reply: ProviderReply;
  readonly outcome: DeliveryOutcome;
  readonly health: ProviderHealth;
  readonly durationMs: number;
  readonly bodyBytes: number;
}

function callOf(reply: ProviderReply, durationMs: number, bodyBytes: number): Call {
  const outcome = classifyDelivery(reply, Date.now());
  return { reply, outcome, health: judgeProvider(outcome), durationMs, bodyBytes };
}

/** What an attempt says about how many may run at the same time. */
function loadOf({ kind }: ProviderHealth): "succeeded" | "overloaded" | undefined {
  switch (kind) {
    case "healthy":
      return "succeeded";
    case "failing":
    case "throttled":
      return "overloaded";
    case "blocking":
    case "refusing":
      return undefined;
    default:
      return kind satisfies never;
  }
}

/**
 * While a breaker isn't closed, acknowledgments that were never attempted go first. Those that failed before may fail again
 * for a reason of their own, and would be one failed probe after another. They are behind by no more than this time.
 */
const FAILED_BEHIND_MS = 3_600_000;

/**
 * A body without room goes behind all that is due within this time. It would come first again, because it is older, and small
 * bodies behind it, which need no room, would wait for it.
 */
const LARGE_BEHIND_MS = 60_000;

interface Waiting {
  readonly account: string | undefined;
  readonly why: Extract<Admission, { kind: "wait" }>["why"] | "publisher_gone";
}

function park(
  { log }: AttemptDeps,
  { job, entry, nowMs }: DueAttempt,
  { account, why }: Waiting,
): AttemptResult {
  const { adResponseId, publisher } = job;
  log.debug({ event: "attempt_waits", why, ad_response_id: adResponseId, publisher });
  // A waiting gateway gets a notice that there will be no outcome soon. It gets none for a busy slot or for lack of room,
  // which may be free soon.
  const code = why === "publisher_gone" ? why : "circuit_open";
  const notice = { event: "retry", code, delayMs: PARKED_MAX_MS } as const;
  return {
    kind: "parked",
    account,
    place: { kind: "by_time", dueAtMs: placeOf(why, entry, nowMs) },
    notify: why === "slots" || why === "bytes" ? undefined : notificationFor(job, notice),
  };
}

/** Parked acknowledgments are released by this time, the least first. */
function placeOf(why: Waiting["why"], entry: DueAttempt["entry"], nowMs: number): number {
  if (why === "bytes") {
    return nowMs + LARGE_BEHIND_MS;
  }
  const dueAtMs = entry.nextAttemptAtMs ?? entry.queuedAtMs ?? nowMs;
  return why === "circuit" && entry.attempts > 0 ? dueAtMs + FAILED_BEHIND_MS : dueAtMs;
}

/** Loads the body and posts it; undefined if the body is gone. */
async function post(
  { provider: client, metrics, tracing, timeoutMs }: AttemptDeps,
  { due: { job, payload }, span: { context } }: StartedAttempt,
  { account, name: provider }: SharedAccount,
): Promise<Call | undefined> {
  const body = await payload.load();
  if (body === undefined) {
    return undefined;
  }
  const { requestId, adAckId } = job;
  const startedAtMs = performance.now();
  const span = tracing.startSpan({ name: "provider acknowledge", kind: "client", parent: context });
  const traceHeaders = traceHeadersOf(span.context);
  const reply = await client.acknowledge({ account, body, requestId, traceHeaders, adAckId, timeoutMs });
  const durationMs = performance.now() - startedAtMs;
  const outcome = outcomeLabelOf(reply);
  metrics.providerDurations.observe({ operation: "acknowledge", provider, outcome }, durationMs);
  span.set({ "adrelay.outcome": outcome });
  span.end({ isFault: reply.kind === "failed" || reply.status >= 500 });
  return callOf(reply, durationMs, Buffer.byteLength(body));
}

async function settle(
  deps: AttemptDeps,
  { due, span, isProbe, account }: StartedAttempt,
  { reply, outcome, health, durationMs, bodyBytes }: Call,
): Promise<AttemptResult> {
  const isAway = await isProviderAway(deps, due, { account, health, isProbe });
  const providerError = publicErrorOf(reply);
  const settlement = decideSettlement(deps, {
    due,
    outcome,
    providerError,
    durationMs,
    bodyBytes,
    isProbe,
    parkAt: isAway ? account.shared.id : undefined,
  });
  endAttemptSpan(span, due, { settlement, isProbe });
  const trace = { own: span.context?.traceId, recorded: span.recordedTraceId };
  const cause = reply.kind === "failed" ? reply.cause : undefined;
  const answerFault = outcome.kind === "retry" ? outcome.answerFault : undefined;
  return { kind: "made", settlement, isProbe, cause, providerError, answerFault, trace };
}

/** Reports what the attempt says about its provider. The attempt is booked in any case. */
async function isProviderAway(
  { breakers, log }: AttemptDeps,
  { job: { publisher, adResponseId: id }, entry }: DueAttempt,
  { account, ...seen }: Pick<StartedAttempt, "account" | "isProbe"> & Pick<Call, "health">,
): Promise<boolean> {
  try {
    const attempted = { publisher, id, isFirst: entry.attempts === 0 };
    return (await breakers.learn(account, attempted, seen)) === "open";
  } catch (err) {
    log.warn({ event: "circuit_not_told", publisher, err });
    return seen.isProbe;
  }
}

/** Each attempt has its own trace, because retries go on for days after the request's trace has ended. */
function startAttemptSpan(tracing: Tracing, { traceparent }: JobHead): Span {
  return tracing.startSpan({
    name: "delivery attempt",
    kind: "consumer",
    follows: parseTraceContext(traceparent),
  });
}

function endAttemptSpan(
  span: Span,
  { job, entry }: DueAttempt,
  { settlement, isProbe }: { readonly settlement: Settlement; readonly isProbe: boolean },
): void {
  const { event, code } = settlement;
  span.set({
    "adrelay.outcome": event,
    "adrelay.code": code,
    "adrelay.attempt": entry.attempts + 1,
    "adrelay.probe": isProbe,
    "adrelay.publisher": job.publisher,
    "adrelay.ad_response_id": job.adResponseId,
    "adrelay.request_id": job.requestId,
  });
  span.end({ isFault: event !== "deliver" && event !== "refuse" });
}

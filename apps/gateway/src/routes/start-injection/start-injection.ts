/**
 * Passes an injection through, within the caller's time limit whatever the provider and Redis do
 * (invariant 8), and books the answer before it goes out.
 *
 * After a time-out, or once the caller has hung up, the call to the provider runs on for a bounded time:
 * a 200 that nobody gets any more is an ad that was sold, and goes on the books as abandoned.
 */
import { type TraceContext, traceHeadersOf } from "@adrelay/contract";
import { classifyInjection, type FallbackReason, type InjectionVerdict, outcomeLabelOf } from "@adrelay/core";
import type { InjectionRecord, Ledger } from "@adrelay/ledger";
import type { ProviderClient, Publisher, RawReply, RunningCall } from "@adrelay/provider";
import { OVERDUE, type Tracing, withDeadline } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { GatewayMetrics } from "../../metrics/gateway-metrics.ts";
import type { PendingWork } from "../../pending-work.ts";
import { type Fallback, makeFallback } from "./fallback.ts";
import { type Caller, GIVEN_UP, Waits } from "./waits.ts";

export interface StartInjectionDeps {
  readonly ledger: Ledger;
  readonly provider: ProviderClient;
  readonly metrics: GatewayMetrics;
  readonly log: Logger;
  readonly tracing: Tracing;
  readonly pending: PendingWork;
  /** Fires when the process must end soon: callers that still wait get a fallback. */
  readonly hurry: AbortSignal;
  readonly ackDeadlineMs: number;
}

export interface InjectionInput {
  readonly publisher: Publisher;
  readonly body: Buffer;
  readonly requestId: string;
  /** The trace of its request. */
  readonly trace: TraceContext | undefined;
  readonly timeoutMs: number;
  readonly caller: Caller;
}

export type InjectionAnswer =
  | {
      readonly kind: "pass_through";
      readonly outcome: string;
      readonly raw: RawReply;
      readonly status: number;
    }
  | { readonly kind: "fallback"; readonly reason: FallbackReason; readonly fallback: Fallback }
  | { readonly kind: "caller_gone" };

/** The ledger may hold an answer up for this long at most. */
const LEDGER_TIMEOUT_MS = 250;
/** What the ledger is given at least, when the provider has used up the caller's time. */
const LEDGER_TIMEOUT_MIN_MS = 25;
/** How long the provider is listened to after the caller's time is up. */
const LATE_ANSWER_MS = 30_000;

/** How many of them at once: a provider that hangs must not pile them up. */
const LATE_ANSWERS_MAX = 64;

export type StartInjection = (input: InjectionInput) => Promise<InjectionAnswer>;

export function makeStartInjection(deps: StartInjectionDeps): StartInjection {
  const late = new Set<RunningCall>();
  const waits = new Waits(deps.hurry);
  return async (input) => {
    const startedAtMs = performance.now();
    const call = callProvider(deps, input);
    const first = await waits.untilGivenUp(call.reply, input.timeoutMs, input.caller);
    if (first === GIVEN_UP) {
      listenLate(deps, input, { call, late });
      return input.caller.isGone
        ? { kind: "caller_gone" }
        : fallBack(deps, input, { reason: "timeout", startedAtMs });
    }
    const verdict = classifyInjection(first.reply);
    if (verdict.kind === "fallback") {
      return fallBack(deps, input, { reason: verdict.reason, startedAtMs });
    }
    return passThrough(deps, input, { raw: first, verdict, startedAtMs });
  };
}

/**
 * Hears a provider out whose caller has something else by now. A request that has not gone out is called
 * off: nobody must be sold an ad that nobody can get.
 */
function listenLate(
  deps: StartInjectionDeps,
  input: InjectionInput,
  { call, late }: { call: RunningCall; late: Set<RunningCall> },
): void {
  if (!call.wasSent()) {
    call.giveUp();
    return;
  }
  const [oldest] = late;
  if (late.size >= LATE_ANSWERS_MAX && oldest !== undefined) {
    oldest.giveUp();
    late.delete(oldest);
  }
  late.add(call);
  deps.pending.add(
    call.reply.then((raw) => {
      late.delete(call);
      return bookAbandoned(deps, input, raw);
    }),
  );
}

function callProvider(
  { provider, metrics, tracing }: StartInjectionDeps,
  input: InjectionInput,
): RunningCall {
  const startedAtMs = performance.now();
  const span = tracing.startSpan({ name: "provider start_injection", kind: "client", parent: input.trace });
  const call = provider.startInjection({
    account: input.publisher.account,
    body: input.body,
    requestId: input.requestId,
    traceHeaders: traceHeadersOf(span.context),
    timeoutMs: input.timeoutMs + LATE_ANSWER_MS,
  });
  const reply = call.reply.then((raw) => {
    const outcome = outcomeLabelOf(raw.reply);
    span.set({ "adrelay.outcome": outcome });
    span.end({ isFault: raw.reply.kind === "failed" || raw.reply.status >= 500 });
    const seconds = (performance.now() - startedAtMs) / 1000;
    metrics.providerDuration.observe({ operation: "start_injection", outcome }, seconds);
    return raw;
  });
  return { ...call, reply };
}

async function passThrough(
  deps: StartInjectionDeps,
  input: InjectionInput,
  answer: { raw: RawReply; verdict: Exclude<InjectionVerdict, { kind: "fallback" }>; startedAtMs: number },
): Promise<InjectionAnswer> {
  const { raw, verdict } = answer;
  const status = raw.reply.kind === "answered" ? raw.reply.status : 0;
  if (verdict.kind === "callers_fault") {
    deps.metrics.injections.inc({ publisher: input.publisher.id, outcome: "callers_fault" });
    return { kind: "pass_through", outcome: "callers_fault", raw, status };
  }
  if (input.caller.isGone) {
    await bookAbandoned(deps, input, raw);
    return { kind: "caller_gone" };
  }
  const { adResponseId: id, outcome } = verdict;
  await book(deps, input, { record: { id, outcome }, timeoutMs: ledgerTimeoutMs(input, answer.startedAtMs) });
  return { kind: "pass_through", outcome, raw, status };
}

async function fallBack(
  deps: StartInjectionDeps,
  input: InjectionInput,
  { reason, startedAtMs }: { reason: FallbackReason; startedAtMs: number },
): Promise<InjectionAnswer> {
  const fallback = makeFallback(performance.now() - startedAtMs);
  const record = { id: fallback.adResponseId, outcome: "fallback" } as const;
  await book(deps, input, { record, timeoutMs: ledgerTimeoutMs(input, startedAtMs) });
  return { kind: "fallback", reason, fallback };
}

/** The provider's answer after its caller has something else, or nothing. */
async function bookAbandoned(deps: StartInjectionDeps, input: InjectionInput, raw: RawReply): Promise<void> {
  const verdict = classifyInjection(raw.reply);
  if (verdict.kind === "enhancement" && verdict.outcome === "ok") {
    const record = { id: verdict.adResponseId, outcome: "abandoned" } as const;
    await book(deps, input, { record, timeoutMs: LEDGER_TIMEOUT_MS });
  }
}

/** Books an answer; a ledger that is away or slow is counted and holds nothing up. */
async function book(
  { ledger, metrics, log, ackDeadlineMs }: StartInjectionDeps,
  { publisher, requestId }: InjectionInput,
  { record, timeoutMs }: { record: Pick<InjectionRecord, "id" | "outcome">; timeoutMs: number },
): Promise<void> {
  metrics.injections.inc({ publisher: publisher.id, outcome: record.outcome });
  const write = ledger.recordInjection({ ...record, publisher: publisher.id, deadlineMs: ackDeadlineMs });
  const booked = await withDeadline(
    write.catch((err: unknown) => ({ err })),
    timeoutMs,
  );
  if (booked === OVERDUE || typeof booked === "object") {
    metrics.untracked.inc();
    log.warn({
      event: "injection_untracked",
      request_id: requestId,
      ad_response_id: record.id,
      outcome: record.outcome,
      err: booked === OVERDUE ? "the ledger was too slow" : booked.err,
    });
  }
}

function ledgerTimeoutMs({ timeoutMs }: InjectionInput, startedAtMs: number): number {
  const leftMs = timeoutMs - (performance.now() - startedAtMs);
  return Math.min(LEDGER_TIMEOUT_MS, Math.max(leftMs, LEDGER_TIMEOUT_MIN_MS));
}

/**
 * Passes an injection through, within the caller's time limit whatever the provider and Redis do (invariant 8), and records
 * the answer before it goes out.
 *
 * After a time-out, or once the caller has hung up, the call to the provider runs on for a bounded time. If a 200
 * then comes, an ad was sold that no caller gets. It is recorded as abandoned.
 */
import { type AdResponseId, type TraceContext, traceHeadersOf } from "@adrelay/contract";
import { classifyInjection, type InjectionClass, type ProviderReply } from "@adrelay/core";
import { outcomeLabelOf, type ProviderClient, type RawReply, type RunningCall } from "@adrelay/provider";
import type { Tracing } from "@adrelay/service-kit";
import type { HeldBytes, Holding } from "../admission/holding.ts";
import { type Fallback, makeFallback, newAdResponseId } from "./fallback.ts";
import { LateCalls } from "./late-calls.ts";
import {
  makeRecordAnswer,
  RECORD_TIMEOUT_MS,
  type RecordAnswer,
  type RecordDeps,
  type RecordInput,
} from "./record-answer.ts";
import { type Caller, GIVEN_UP, type PendingWork, Waits } from "./waits.ts";

export interface StartInjectionDeps extends RecordDeps {
  readonly provider: Pick<ProviderClient, "startInjection">;
  readonly tracing: Tracing;
  readonly pending: PendingWork;
  /** Fires during a stop. Callers that still wait then get a fallback. */
  readonly drainSignal: AbortSignal;
}

interface InjectionInput extends RecordInput {
  /** The trace of its request. */
  readonly trace: TraceContext | undefined;
  readonly timeoutMs: number;
  /** The last part of `timeoutMs`, which only the record may use; default: 0. Then the record may exceed `timeoutMs`. */
  readonly recordReserveMs?: number;
  /** The longest time for the record, if there is as much left. By default it may delay the answer by 250 ms. */
  readonly recordMaxMs?: number;
  readonly caller: Caller;
  /** Counts what the call to the provider holds. */
  readonly holding: InjectionHolding;
}

/** The body is let go of once the provider has answered, or gets no more of it. */
type InjectionHolding = Pick<Holding, "holdAnswer"> & {
  takeBody(): Pick<HeldBytes, "release">;
  takeAnswer(): Pick<HeldBytes, "release">;
};

/** What a caller is answered. */
export type InjectionAnswer =
  | {
      readonly kind: "pass_through";
      readonly outcome: string;
      readonly raw: RawReply;
      readonly status: number;
      /** When the acknowledgment is due, in milliseconds since 1970; undefined if there is nothing to acknowledge. */
      readonly acknowledgeByMs: number | undefined;
      readonly untrackedId: AdResponseId | undefined;
    }
  | (FallbackCause & {
      readonly kind: "fallback";
      readonly fallback: Fallback;
      /** The id of an ad response whose record Redis didn't confirm. */
      readonly untrackedId: AdResponseId | undefined;
    })
  | { readonly kind: "caller_gone" };

/** Why the caller gets a fallback. */
type FallbackCause = Pick<Extract<InjectionClass, { kind: "fallback" }>, "reason" | "answerFault"> & {
  /** The provider's; undefined after a time-out. */
  readonly reply: ProviderReply | undefined;
};

/** How long the store has at least, when the provider has used up the caller's time. */
const RECORD_TIMEOUT_MIN_MS = 25;
/** How long the relay waits for the provider after the caller's time is up. */
const LATE_ANSWER_MS = 30_000;

/** How many such calls there may be, of all publishers together. */
const LATE_ANSWERS_MAX = 64;

/** Asks the provider for an ad. The body is what the provider is sent. */
export type StartInjection = (input: InjectionInput, body: Buffer) => Promise<InjectionAnswer>;

/** What the parts here share. */
interface Parts extends StartInjectionDeps {
  readonly record: RecordAnswer;
}

/** Connects an injection to the provider and to the store. */
export function makeStartInjection(given: StartInjectionDeps): StartInjection {
  const deps: Parts = { ...given, record: makeRecordAnswer(given) };
  const late = new LateCalls(LATE_ANSWERS_MAX);
  const waits = new Waits(deps.drainSignal);
  const follow = async (input: InjectionInput, call: RunningCall): Promise<InjectionAnswer> => {
    const startedAtMs = performance.now();
    const first = await waits.untilGivenUp(call.reply, providerTimeoutMs(input), input.caller);
    if (first === GIVEN_UP) {
      listenLate(deps, input, { call, late });
      return input.caller.isGone
        ? { kind: "caller_gone" }
        : fallBack(deps, input, { reason: "timeout", answerFault: undefined, reply: undefined, startedAtMs });
    }
    const classified = classifyInjection(first.reply);
    if (classified.kind === "fallback") {
      return fallBack(deps, input, { ...classified, reply: first.reply, startedAtMs });
    }
    return passThrough(deps, input, { raw: first, classified, startedAtMs });
  };
  // Not async, because it would hold the body until the provider has answered.
  return (input, body) =>
    input.caller.isGone
      ? Promise.resolve({ kind: "caller_gone" })
      : follow(input, callProvider(deps, input, body));
}

/**
 * Waits for the provider's answer after its caller was given a fallback. A request that was not
 * sent yet, or not completely, is cancelled, so that no ad is sold without a caller, and no body is held for one.
 */
function listenLate(
  deps: Parts,
  input: InjectionInput,
  { call, late }: { call: RunningCall; late: LateCalls },
): void {
  if (!call.isBodySent()) {
    call.giveUp();
    return;
  }
  const publisher = input.publisher.id;
  late.add(publisher, call);
  input.holding.takeBody().release();
  const answer = input.holding.takeAnswer();
  deps.pending.add(
    call.reply
      .then((raw) => {
        late.remove(publisher, call);
        return recordAbandoned(deps, input, raw);
      })
      .finally(() => answer.release()),
  );
}

function callProvider(
  { provider, metrics, tracing }: StartInjectionDeps,
  input: InjectionInput,
  body: Buffer,
): RunningCall {
  const startedAtMs = performance.now();
  const span = tracing.startSpan({ name: "provider start_injection", kind: "client", parent: input.trace });
  const call = provider.startInjection({
    account: input.publisher.account,
    body,
    requestId: input.requestId,
    traceHeaders: traceHeadersOf(span.context),
    timeoutMs: input.timeoutMs + LATE_ANSWER_MS,
    holdAnswer: (bytes) => input.holding.holdAnswer(bytes),
  });
  const held = input.holding.takeBody();
  const reply = call.reply.then((raw) => {
    held.release();
    const outcome = outcomeLabelOf(raw.reply);
    span.set({ "adrelay.outcome": outcome });
    span.end({ isFault: raw.reply.kind === "failed" || raw.reply.status >= 500 });
    metrics.observeProvider(input.publisher.id, outcome, performance.now() - startedAtMs);
    return raw;
  });
  return { ...call, reply };
}

async function passThrough(
  deps: Parts,
  input: InjectionInput,
  answer: { raw: RawReply; classified: Exclude<InjectionClass, { kind: "fallback" }>; startedAtMs: number },
): Promise<InjectionAnswer> {
  const { raw, classified } = answer;
  const status = raw.reply.kind === "answered" ? raw.reply.status : 0;
  if (classified.kind === "callers_fault") {
    deps.metrics.countInjection(input.publisher.id, { outcome: "callers_fault" });
    const nothing = { acknowledgeByMs: undefined, untrackedId: undefined };
    return { kind: "pass_through", outcome: "callers_fault", raw, status, ...nothing };
  }
  if (input.caller.isGone) {
    await recordAbandoned(deps, input, raw);
    return { kind: "caller_gone" };
  }
  const { adResponseId, outcome } = classified;
  // A record needs an id. Nobody can ask for one that the provider didn't give, but the injection is counted.
  const id = adResponseId ?? newAdResponseId();
  const recorded = await deps.record(input, {
    ...(classified.outcome === "ok"
      ? { outcome: classified.outcome, answer: classified.answer }
      : { outcome: classified.outcome }),
    id,
    timeoutMs: recordTimeoutMs(input, answer.startedAtMs),
  });
  // A record that Redis didn't confirm may be written nevertheless. Its deadline is then about the same.
  const acknowledgeByMs =
    outcome === "ok" ? (recorded?.deadlineAtMs ?? Date.now() + deps.ackDeadlineMs) : undefined;
  const untrackedId = recorded === undefined ? id : undefined;
  return { kind: "pass_through", outcome, raw, status, acknowledgeByMs, untrackedId };
}

async function fallBack(
  deps: Parts,
  input: InjectionInput,
  { reason, answerFault, reply, startedAtMs }: FallbackCause & { startedAtMs: number },
): Promise<InjectionAnswer> {
  const fallback = makeFallback(performance.now() - startedAtMs);
  const timeoutMs = recordTimeoutMs(input, startedAtMs);
  const { adResponseId: id } = fallback;
  const recorded = await deps.record(input, { id, outcome: "fallback", reason, timeoutMs });
  const untrackedId = recorded === undefined ? id : undefined;
  return { kind: "fallback", reason, answerFault, reply, fallback, untrackedId };
}

/** Records the provider's answer after its caller was given a fallback, or has hung up. */
async function recordAbandoned(deps: Parts, input: InjectionInput, raw: RawReply): Promise<void> {
  const classified = classifyInjection(raw.reply);
  if (classified.kind === "enhancement" && classified.outcome === "ok") {
    const { adResponseId: id } = classified;
    await deps.record(input, { id, outcome: "abandoned", timeoutMs: RECORD_TIMEOUT_MS });
  }
}

/** How long the caller waits for the provider. */
function providerTimeoutMs({ timeoutMs, recordReserveMs = 0 }: InjectionInput): number {
  return Math.max(timeoutMs - recordReserveMs, 0);
}

/** How long the caller waits for the store. */
function recordTimeoutMs(
  { timeoutMs, recordMaxMs = RECORD_TIMEOUT_MS }: InjectionInput,
  startedAtMs: number,
): number {
  const leftMs = timeoutMs - (performance.now() - startedAtMs);
  return Math.min(recordMaxMs, Math.max(leftMs, RECORD_TIMEOUT_MIN_MS));
}

/**
 * The backends behind the streams: each calls the model through a proxy, answers its tool calls, repeats a call that brought
 * nothing as clients do, and acknowledges by itself where its plan says so.
 */
import { setTimeout as wait } from "node:timers/promises";
import { Acknowledging, type AcknowledgmentRecord } from "./acknowledging.ts";
import { PROXY_IDS } from "./faults.ts";
import type { TurnsStack } from "./stack.ts";
import { type AnsweredCall, type CallRecord, callModel, hasAllCalls } from "./stream-call.ts";
import { type StreamPlan, stepOf } from "./streams.ts";
import type { TrafficClock } from "./traffic-clock.ts";

export interface StreamRecord {
  readonly plan: StreamPlan;
  readonly calls: readonly CallRecord[];
  readonly acknowledgments: readonly AcknowledgmentRecord[];
}

/** A frozen proxy answers nothing until it goes on. */
const CALL_TIMEOUT_MS = 40_000;
/** On a busy machine a model that was killed takes seconds to start. */
const RETRIES_MAX = 8;
const RETRY_AFTER_MS = 300;
const RETRY_AFTER_MAX_MS = 1500;

/** Plays all streams. Resolves once each caller has its answer. */
export async function playStreams(
  stack: TurnsStack,
  plans: readonly StreamPlan[],
  clock: TrafficClock,
): Promise<readonly StreamRecord[]> {
  const played = new Map<number, Promise<StreamRecord>>();
  for (const plan of plans) {
    const before = plan.follows === undefined ? undefined : played.get(plan.follows);
    const due = Promise.all([clock.until(plan.startsAtMs), before]);
    played.set(
      plan.number,
      due.then(() => playStream(stack, plan)),
    );
  }
  return Promise.all(played.values());
}

async function playStream(stack: TurnsStack, plan: StreamPlan): Promise<StreamRecord> {
  const calls: CallRecord[] = [];
  const acknowledging = new Acknowledging(stack, plan);
  const backend: Backend = {
    stack,
    plan,
    calls,
    onHeaders: (call) => acknowledging.onHeaders(call),
  };
  await (plan.loop?.answersAtOnce === true ? playAtOnce(backend) : playInTurn(backend));
  await acknowledging.end(calls);
  return { plan, calls, acknowledgments: acknowledging.sent };
}

interface Backend {
  readonly stack: TurnsStack;
  readonly plan: StreamPlan;
  readonly calls: CallRecord[];
  onHeaders(call: CallRecord): void;
}

/** Each step answers all calls of the one before. If one called no tools, or not all of them came, the loop is over. */
async function playInTurn(backend: Backend): Promise<void> {
  const answered: AnsweredCall[] = [];
  for (const step of backend.plan.steps.keys()) {
    const call = await playStep(backend, { step, answered });
    if (!hasAllCalls(backend.plan, call)) {
      return;
    }
    answered.push({ call, callIds: call.callIds });
  }
}

/** Each further step answers one call of the first, as soon as all of these have come. */
async function playAtOnce(backend: Backend): Promise<void> {
  const { plan } = backend;
  const called = Promise.withResolvers<CallRecord>();
  const onCallIds = (call: CallRecord) => {
    if (hasAllCalls(plan, call)) {
      called.resolve(call);
    }
  };
  const first = playStep(backend, { step: 0, answered: [], onCallIds });
  const call = await Promise.race([called.promise, first]);
  if (hasAllCalls(plan, call)) {
    const others = plan.steps.slice(1).map((_, at) => {
      const answered = [{ call, callIds: call.callIds.slice(at, at + 1) }];
      return playStep(backend, { step: at + 1, answered });
    });
    await Promise.all(others);
  }
  await first;
}

interface StepToPlay {
  readonly step: number;
  readonly answered: readonly AnsweredCall[];
  readonly onCallIds?: (call: CallRecord) => void;
}

/** Resolves to the last of its calls. */
async function playStep(backend: Backend, toPlay: StepToPlay): Promise<CallRecord> {
  const { stack, plan, calls, onHeaders } = backend;
  const { step, answered, onCallIds = () => {} } = toPlay;
  const { afterMs, caller, firstProxy } = stepOf(plan, { step });
  await wait(afterMs);
  for (let attempt = 0; ; attempt += 1) {
    const proxy = PROXY_IDS[(firstProxy + attempt) % PROXY_IDS.length] ?? "proxy-1";
    const call = await callModel({
      url: stack.proxyUrlOf(proxy),
      proxy,
      plan,
      place: { step, attempt },
      answered,
      // Only the first call is hung up on.
      caller: attempt === 0 ? caller : { kind: "reads" },
      key: stack.callerKey,
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      onHeaders,
      onCallIds,
    });
    calls.push(call);
    if (!isRepeated(call) || attempt === RETRIES_MAX) {
      return call;
    }
    await wait(Math.min(RETRY_AFTER_MS * (attempt + 1), RETRY_AFTER_MAX_MS));
  }
}

/** As the official clients do it, but not for ever. A caller that hung up before it had anything asks again, too. */
function isRepeated({ status, text, callIds, end }: CallRecord): boolean {
  const isFault = status === undefined || status === 429 || status >= 500 || end !== "whole";
  return text === "" && callIds.length === 0 && isFault;
}

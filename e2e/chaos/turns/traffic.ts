/**
 * The backends behind the streams: each calls the model through a proxy, repeats a call that brought no text as clients
 * do, and acknowledges by itself where its plan says so.
 */
import { setTimeout as wait } from "node:timers/promises";
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { relayCaller } from "@adrelay/testkit";
import { PROXY_IDS } from "./faults.ts";
import type { TurnsStack } from "./stack.ts";
import { type CallRecord, callModel } from "./stream-call.ts";
import type { StreamPlan } from "./streams.ts";
import type { TrafficClock } from "./traffic-clock.ts";

export interface StreamRecord {
  readonly plan: StreamPlan;
  readonly calls: CallRecord[];
  readonly acknowledgments: AcknowledgmentRecord[];
}

/** What a backend has sent by itself. */
export interface AcknowledgmentRecord {
  readonly adResponseId: string;
  readonly text: string;
  /** Of all answers; an acknowledgment that got no clear answer is sent again. */
  readonly statuses: number[];
}

/** A frozen proxy answers nothing until it goes on. */
const CALL_TIMEOUT_MS = 40_000;
/** On a busy machine a model that was killed takes seconds to start. */
const RETRIES_MAX = 8;
const RETRY_AFTER_MS = 300;
const RETRY_AFTER_MAX_MS = 1500;
const ACKNOWLEDGE_TIMEOUT_MS = 5000;
/** No backend tries for ever. A busy machine takes long to start a gateway that was killed. */
const ACKNOWLEDGE_FOR_MS = 90_000;
const UNCLEAR = new Set([429, 503]);

/** Plays all streams. Resolves once each caller has its answer. */
export async function playStreams(
  stack: TurnsStack,
  plans: readonly StreamPlan[],
  clock: TrafficClock,
): Promise<readonly StreamRecord[]> {
  return Promise.all(
    plans.map(async (plan) => {
      await clock.until(plan.startsAtMs);
      return playStream(stack, plan);
    }),
  );
}

async function playStream(stack: TurnsStack, plan: StreamPlan): Promise<StreamRecord> {
  const record: StreamRecord = { plan, calls: [], acknowledgments: [] };
  const open: Promise<void>[] = [];
  for (let attempt = 0; attempt <= RETRIES_MAX; attempt += 1) {
    const proxy = PROXY_IDS[(plan.firstProxy + attempt) % PROXY_IDS.length] ?? "proxy-1";
    const call = await callModel({
      url: stack.proxyUrlOf(proxy),
      proxy,
      plan,
      // Only the first call is hung up on.
      caller: attempt === 0 ? plan.caller : { kind: "reads" },
      key: stack.callerKey,
      signal: AbortSignal.timeout(CALL_TIMEOUT_MS),
      onHeaders: ({ adResponseId }) => {
        if (plan.acknowledges === "backend_before" && adResponseId !== undefined) {
          open.push(acknowledge(stack, record, { adResponseId, text: "before the end" }));
        }
      },
    });
    record.calls.push(call);
    const { adResponseId } = call;
    if (adResponseId !== undefined && ["backend_after", "manual"].includes(plan.acknowledges)) {
      open.push(acknowledge(stack, record, { adResponseId, text: call.text }));
    }
    if (!isRepeated(call)) {
      break;
    }
    await wait(Math.min(RETRY_AFTER_MS * (attempt + 1), RETRY_AFTER_MAX_MS));
  }
  await Promise.all(open);
  return record;
}

/** As the official clients do it, but not for ever. A caller that hung up before any text asks again, too. */
function isRepeated({ status, text, end }: CallRecord): boolean {
  const isFault = status === undefined || status === 429 || status >= 500 || end !== "whole";
  return text === "" && isFault;
}

/** Sends it until it gets a clear answer. */
async function acknowledge(
  { gatewayUrl, callerKey }: TurnsStack,
  record: StreamRecord,
  { adResponseId, text }: { readonly adResponseId: string; readonly text: string },
): Promise<void> {
  const sent: AcknowledgmentRecord = { adResponseId, text, statuses: [] };
  record.acknowledgments.push(sent);
  const caller = relayCaller(gatewayUrl, callerKey);
  const body = JSON.stringify({ ad_response_id: adResponseId, llm_response: text });
  const giveUpAtMs = performance.now() + ACKNOWLEDGE_FOR_MS;
  while (performance.now() < giveUpAtMs) {
    const signal = AbortSignal.timeout(ACKNOWLEDGE_TIMEOUT_MS);
    const headers = { Prefer: "respond-async" };
    const answer = await caller.send(ACKNOWLEDGE_PATH, body, { headers, signal }).catch(() => undefined);
    if (answer !== undefined) {
      sent.statuses.push(answer.status);
      if (!UNCLEAR.has(answer.status)) {
        return;
      }
    }
    await wait(RETRY_AFTER_MS);
  }
}

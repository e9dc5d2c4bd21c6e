/** What a broken check prints of a turn or a call: enough to find it in the logs and among the faults. */
import { acknowledgedOf } from "@adrelay/store";
import type { TurnEvidence } from "./evidence.ts";
import type { CallRecord } from "./stream-call.ts";
import { modelFaultsOf, type StreamPlan, stepOf } from "./streams.ts";

export function describeTurn({ plan, calls, untold, entry, postedTexts, posts }: TurnEvidence): string {
  return [
    describeStream(plan),
    ...[...calls, ...untold].map(describeCall),
    `ledger ${entry?.state ?? "nothing"}, accepted ${timeOf(entry && acknowledgedOf(entry)?.acceptedAtMs)}`,
    `${posts} posts with ${postedTexts.map((text) => text.length).join("/") || "no"} characters`,
  ].join(", ");
}

function describeStream({
  number,
  dialect,
  isStreamed,
  acknowledges,
  loop,
  follows,
  steps,
}: StreamPlan): string {
  const answers = isStreamed ? "streamed" : "whole";
  const asked =
    loop === undefined ? "one step" : `${steps.length} of ${loop.answersAtOnce ? 3 : loop.rounds + 1} steps`;
  const first = follows === undefined ? "" : `, after ${follows}`;
  return `stream ${number} (${dialect}, ${answers}, ${acknowledges}, ${asked}${first})`;
}

export function describeCall(call: CallRecord): string {
  const { plan, step, attempt, proxy, startedAtMs, status, ad, text, end, endedAtMs, callIds } = call;
  const { caller } = stepOf(plan, call);
  const faults = modelFaultsOf(plan, call).replace(/;mark=[^,]*/, "");
  return [
    `${timeOf(startedAtMs)} step ${step}.${attempt} at ${proxy} (${attempt > 0 ? "reads" : caller.kind}; ${faults})`,
    `answered ${status ?? "nothing"} (${ad})`,
    `${text.length} characters and ${callIds.length} calls, ${end} at ${timeOf(endedAtMs)}`,
  ].join(" ");
}

function timeOf(atMs: number | undefined): string {
  return atMs === undefined || !Number.isFinite(atMs) ? "never" : new Date(atMs).toISOString().slice(11, -1);
}

/** What must hold of each turn at the end of a run. */
import { acknowledgedOf } from "@adrelay/store";
import type { Check } from "../checks/check.ts";
import type { TurnEvidence, TurnsEvidence } from "./evidence.ts";
import { lossOf } from "./losses.ts";
import { ACK_DEADLINE_MS } from "./stack.ts";
import type { CallRecord } from "./stream-call.ts";
import type { StreamRecord } from "./traffic.ts";

type Rule = (turn: TurnEvidence) => string | undefined;

export function checkTurns({ turns, streams, spans }: TurnsEvidence): readonly Check[] {
  const check = (name: string, concerns: (turn: TurnEvidence) => boolean, rule: Rule): Check => {
    const checked = turns.filter(concerns);
    const broken = checked.flatMap((turn) => {
      const wrong = rule(turn);
      return wrong === undefined ? [] : [`${turn.id}: ${wrong}; ${describe(turn)}`];
    });
    return { name, checked: checked.length, broken };
  };
  const textFault: Rule = (turn) =>
    tooShort(turn, turn.calls, (call) => lossOf(turn, call, spans).charsLeast);
  const hasDied = (turn: TurnEvidence) =>
    turn.calls.some((call) => lossOf(turn, call, spans).journaledUntilMs !== undefined);
  return [
    check("each ad that reached a caller is delivered", isKnown, stateFault),
    check(
      "no ad is missed or late, however long its turn runs",
      ({ plan }) => plan.acknowledges !== "manual",
      missedFault,
    ),
    check("a turn that outlives ACK_DEADLINE_MS is delivered", isLong, stateFault),
    check(
      "an ad has one text in all posts",
      ({ posts }) => posts > 0,
      ({ postedTexts }) => (postedTexts.length > 1 ? `${postedTexts.length} texts were posted` : undefined),
    ),
    check("an acknowledged text is a beginning of the model's", isOfProxy, prefixFault),
    check(
      "all that a caller received is acknowledged",
      (turn) => isOfProxy(turn) && !hasDied(turn),
      textFault,
    ),
    check(
      "a proxy that died costs two batches at most",
      (turn) => isOfProxy(turn) && hasDied(turn),
      textFault,
    ),
    check("an ad that its model refused has an empty text", ({ plan }) => plan.isRefused, refusalFault),
    check("an ad of a backend has its text or the proxy's", ({ sent }) => sent.length > 0, backendFault),
    ...checkCalls(streams),
  ];
}

/** What callers were answered. */
function checkCalls(streams: readonly StreamRecord[]): readonly Check[] {
  const calls = streams.flatMap(({ plan, calls: made }) => made.map((call) => ({ plan, call })));
  const sent = streams.flatMap(({ acknowledgments }) => acknowledgments);
  const broken = (rule: (call: (typeof calls)[number]) => string | undefined) =>
    calls.flatMap((one) => {
      const wrong = rule(one);
      return wrong === undefined ? [] : [`stream ${one.plan.number}: ${wrong}; ${describeCall(one.call)}`];
    });
  return [
    {
      name: "callers receive what the model sent",
      checked: calls.length,
      broken: broken(({ plan, call }) => (plan.text.startsWith(call.text) ? undefined : "another text")),
    },
    {
      name: "no caller sees that an ad was refused",
      checked: calls.filter(({ plan }) => plan.isRefused).length,
      broken: broken(({ plan, call }) => (plan.isRefused ? refusalOfCall(plan.text, call) : undefined)),
    },
    {
      name: "no backend's acknowledgment is refused",
      checked: sent.length,
      broken: sent.flatMap(({ adResponseId, statuses }) =>
        TAKEN.has(statuses.at(-1) ?? 0)
          ? []
          : [`${adResponseId}: answered ${statuses.join(", ") || "never"}`],
      ),
    },
  ];
}

const TAKEN = new Set([200, 201, 202]);
const REFUSED = new Set([400, 413, 422]);

function refusalOfCall(
  text: string,
  { status, text: received, end, ad, adResponseId }: CallRecord,
): string | undefined {
  if (REFUSED.has(status ?? 0)) {
    return "the refusal reached the caller";
  }
  if (status === 200 && end === "whole" && received !== text) {
    return "the answer to the original prompt isn't whole";
  }
  return status === 200 && adResponseId !== undefined && ad !== "fallback; reason=model_refused"
    ? `the caller was told ${ad}`
    : undefined;
}

/** A caller was told of it, so it was put into a prompt. */
const isKnown = ({ calls }: TurnEvidence) => calls.length > 0;
const isOfProxy = ({ plan, posts }: TurnEvidence) => plan.acknowledges === "proxy" && posts > 0;

function isLong(turn: TurnEvidence): boolean {
  const lastsMs = ({ arrivals, startedAtMs }: CallRecord) => (arrivals.at(-1)?.atMs ?? 0) - startedAtMs;
  return turn.plan.acknowledges === "proxy" && turn.calls.some((call) => lastsMs(call) > ACK_DEADLINE_MS);
}

const stateFault: Rule = ({ entry }) =>
  entry?.state === "delivered" ? undefined : (entry?.state ?? "unknown to the ledger");

/** An ad that never reached a prompt may be abandoned, or unknown because the proxy died before it was booked. */
const missedFault: Rule = ({ entry }) => {
  const isLate = entry !== undefined && acknowledgedOf(entry)?.isLate === true;
  return entry?.state === "missed" || isLate ? "missed" : undefined;
};

const prefixFault: Rule = ({ plan, postedTexts: [text = ""] }) =>
  plan.text.startsWith(text) ? undefined : `not what the model sent: ${text.length} characters`;

const refusalFault: Rule = ({ postedTexts }) =>
  postedTexts.some((text) => text !== "") ? "acknowledged with a text" : undefined;

/** The proxy's text is a beginning of the model's, too. */
const backendFault: Rule = ({ plan, sent, postedTexts }) =>
  postedTexts.every((posted) => sent.some(({ text }) => text === posted) || plan.text.startsWith(posted))
    ? undefined
    : "neither text was posted";

function tooShort(
  { plan, postedTexts: [text = ""] }: TurnEvidence,
  calls: readonly CallRecord[],
  leastOf: (call: CallRecord) => number,
): string | undefined {
  const least = plan.isRefused ? 0 : Math.max(0, ...calls.map(leastOf));
  return text.length < least ? `${text.length} characters are acknowledged, not ${least}` : undefined;
}

function describe({ plan, calls, entry, postedTexts, posts }: TurnEvidence): string {
  return [
    `stream ${plan.number} (${plan.dialect}, ${plan.isStreamed ? "streamed" : "whole"}, ${plan.acknowledges}, caller ${plan.caller.kind}, ${plan.modelFaults})`,
    ...calls.map(describeCall),
    `ledger ${entry?.state ?? "nothing"}, accepted ${timeOf(entry && acknowledgedOf(entry)?.acceptedAtMs)}`,
    `${posts} posts with ${postedTexts.map((text) => text.length).join("/") || "no"} characters`,
  ].join(", ");
}

function describeCall({ proxy, startedAtMs, status, ad, text, end, arrivals }: CallRecord): string {
  return `${timeOf(startedAtMs)} ${proxy} answered ${status ?? "nothing"} (${ad}), ${text.length} characters until ${timeOf(arrivals.at(-1)?.atMs)}, ${end}`;
}

function timeOf(atMs: number | undefined): string {
  return atMs === undefined ? "never" : new Date(atMs).toISOString().slice(11, -1);
}

/** What must hold of each call, and of what backends have sent. */
import { hash } from "node:crypto";
import type { Check } from "../checks/check.ts";
import { describeCall } from "./describe.ts";
import type { TurnsEvidence } from "./evidence.ts";
import { hasAd } from "./pieces.ts";
import type { CallRecord } from "./stream-call.ts";
import type { StreamPlan } from "./streams.ts";
import type { StreamRecord } from "./traffic.ts";

export interface MadeCall {
  readonly plan: StreamPlan;
  readonly call: CallRecord;
}

export const callsOf = (streams: readonly StreamRecord[]): readonly MadeCall[] =>
  streams.flatMap(({ plan, calls }) => calls.map((call) => ({ plan, call })));

/** Applies a rule to calls. The rule returns what is wrong, or undefined. */
export function checkEach(
  name: string,
  calls: readonly MadeCall[],
  rule: (made: MadeCall) => string | undefined,
): Check {
  const broken = calls.flatMap((made) => {
    const wrong = rule(made);
    const { plan, call } = made;
    return wrong === undefined ? [] : [`stream ${plan.number}: ${wrong}; ${describeCall(call)}`];
  });
  return { name, checked: calls.length, broken };
}

export function checkCalls({ streams, sold }: TurnsEvidence): readonly Check[] {
  const calls = callsOf(streams);
  const sent = streams.flatMap(({ acknowledgments }) => acknowledgments);
  const promptOf = ({ plan, call }: MadeCall) =>
    hasAd(call) ? sold.get(call.adResponseId ?? "")?.enhancedPrompt : plan.userText;
  return [
    checkEach("callers receive what the model sent", calls, ({ call: { modelText, text } }) =>
      modelText.startsWith(text) ? undefined : "another text",
    ),
    checkEach(
      "each prompt has its ad, and nothing else is changed",
      calls.filter(({ call }) => call.promptHash !== undefined),
      (made) =>
        made.call.promptHash === hash("sha256", promptOf(made) ?? "") ? undefined : "another prompt",
    ),
    checkEach(
      "no ad gets into another session",
      calls.filter(({ call }) => call.adResponseId !== undefined),
      ({ plan, call }) => {
        const session = sold.get(call.adResponseId ?? "")?.session;
        return session === plan.session ? undefined : `the ad was sold to ${session}`;
      },
    ),
    checkEach(
      "no caller sees that an ad was refused",
      calls.filter(({ plan, call }) => plan.isRefused || call.ad === REFUSED_AD),
      refusalOf,
    ),
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

export const REFUSED_AD = "fallback; reason=model_refused";
const TAKEN = new Set([200, 201, 202]);
const REFUSED = new Set([400, 413, 422]);

function refusalOf({ plan, call }: MadeCall): string | undefined {
  const { status, modelText, text, end, ad, adResponseId } = call;
  if (REFUSED.has(status ?? 0)) {
    return "the refusal reached the caller";
  }
  if (status === 200 && end === "whole" && text !== modelText) {
    return "the answer to the original prompt isn't whole";
  }
  return plan.isRefused && status === 200 && adResponseId !== undefined && ad !== REFUSED_AD
    ? `the caller was told ${ad}`
    : undefined;
}

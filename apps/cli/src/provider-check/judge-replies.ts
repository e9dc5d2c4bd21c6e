/** What the relay would do with a provider's replies, by the relay's own rules, and whether that is what it should do. */
import type { DoctorCheck } from "@adrelay/contract";
import {
  classifyDelivery,
  classifyInjection,
  type DeliveryOutcome,
  type InjectionClass,
  type ProviderReply,
} from "@adrelay/core";
import type { TimedReply } from "./call-provider.ts";

type Judgement = Omit<DoctorCheck, "name">;

/** The injection of a correct request. */
export function judgeInjection(timed: TimedReply): Judgement {
  const found = classifyInjection(timed.reply);
  return judged(timed, found.kind === "enhancement" ? "ok" : "fail", describeInjection(found));
}

/** An acknowledgment of an ad, or its repeat. */
export function judgeDelivery(timed: TimedReply): Judgement {
  const outcome = outcomeOf(timed);
  return judged(timed, outcome.kind === "delivered" ? "ok" : "fail", describeDelivery(outcome));
}

/** An acknowledgment of an id that the provider never gave. */
export function judgeUnknownId(timed: TimedReply): Judgement {
  const outcome = outcomeOf(timed);
  const text = describeDelivery(outcome);
  if (outcome.kind === "dead" && outcome.reason === "http_404") {
    return judged(timed, "ok", text);
  }
  const advice =
    outcome.kind === "delivered" ? "Nobody would notice a wrong id." : "Better: 404 with a JSON object.";
  return judged(timed, "warn", `${text} ${advice}`);
}

/** An acknowledgment of the id of a 201 or 202. */
export function judgeUnfilledId(timed: TimedReply): Judgement {
  const outcome = outcomeOf(timed);
  const text = describeDelivery(outcome);
  return outcome.kind === "refused"
    ? judged(timed, "ok", text)
    : judged(timed, "warn", `${text} Better: 406.`);
}

/** An injection with a wrong key. */
export function judgeWrongKeyInjection(timed: TimedReply): Judgement {
  const found = classifyInjection(timed.reply);
  const isRefused = found.kind === "fallback" && found.reason === "unauthorized";
  const text = describeInjection(found);
  return judged(timed, isRefused ? "ok" : "warn", isRefused ? text : `${text} Better: 401.`);
}

/** An acknowledgment with a wrong key. */
export function judgeWrongKeyDelivery(timed: TimedReply): Judgement {
  const outcome = outcomeOf(timed);
  const text = describeDelivery(outcome);
  if (outcome.kind === "retry" && outcome.blame === "key") {
    return judged(timed, "ok", text);
  }
  // A wrong key in the relay's settings would end its acknowledgments, or pass unnoticed.
  const isHarmful = outcome.kind === "delivered" || outcome.kind === "refused" || outcome.kind === "dead";
  return judged(timed, isHarmful ? "fail" : "warn", `${text} Better: 401.`);
}

function outcomeOf({ reply }: TimedReply): DeliveryOutcome {
  return classifyDelivery(reply, Date.now());
}

function judged({ reply, durationMs }: TimedReply, status: Judgement["status"], text: string): Judgement {
  return { status, detail: `${nameOf(reply)} after ${Math.round(durationMs)} ms: ${text}` };
}

function nameOf(reply: ProviderReply): string {
  return reply.kind === "answered" ? String(reply.status) : reply.code;
}

function describeInjection(found: InjectionClass): string {
  switch (found.kind) {
    case "enhancement":
      return found.outcome === "ok"
        ? "an ad. The caller gets this answer unchanged, and must acknowledge it."
        : `no ad (${found.outcome}). The caller gets this answer unchanged.`;
    case "callers_fault":
      return "a fault in the request. The caller gets this answer unchanged.";
    case "fallback": {
      const fault = found.answerFault === undefined ? "" : ` (${found.answerFault})`;
      return `the caller gets a 202 no_fill instead, with X-Adrelay-Fallback: ${found.reason}${fault}.`;
    }
    default:
      return found satisfies never;
  }
}

function describeDelivery(outcome: DeliveryOutcome): string {
  switch (outcome.kind) {
    case "delivered":
      return `delivered (${outcome.verdict ?? "an earlier attempt arrived"}).`;
    case "refused":
      return "refused. It is never sent again.";
    case "dead":
      return `a dead letter (${outcome.reason}), until an operator acts.`;
    case "ambiguous":
      return "sent again with the same Idempotency-Key, because it may have arrived.";
    case "retry": {
      const fault = outcome.answerFault === undefined ? "" : ` (${outcome.answerFault})`;
      const cause = outcome.blame === "key" ? ", because the key is refused" : "";
      return `sent again${outcome.pace === "slow" ? ", slowly" : ""}${cause}: ${outcome.code}${fault}.`;
    }
    default:
      return outcome satisfies never;
  }
}

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

/** Why nothing else can be tried after this answer to the first call; undefined if it can. */
export function hindranceOf(reply: ProviderReply): string | undefined {
  if (reply.kind === "failed") {
    const isUntrusted = reply.code === "certificate_invalid";
    const hint = isUntrusted ? "NODE_EXTRA_CA_CERTS names a private authority." : "Check --url.";
    return reply.stage === "before_send"
      ? `the service can't be reached (${reply.code}). ${hint}`
      : undefined;
  }
  return reply.status === 401 || reply.status === 403
    ? `the service refuses our key (${reply.status}). Check --key and --key-header.`
    : undefined;
}

/** The injection of a correct request. */
export function judgeInjection(timed: TimedReply): Judgement {
  const found = classifyInjection(timed.reply);
  const limit = `${timed.limitMs} ms (INJECTION_TIMEOUT_MS)`;
  if (timed.durationMs > timed.limitMs) {
    const loss = found.kind === "enhancement" && found.outcome === "ok" ? " The ad is lost." : "";
    return judged(timed, "fail", `too late. After ${limit} the caller gets a 202 no_fill instead.${loss}`);
  }
  return found.kind === "enhancement"
    ? judgedByTime(timed, describeInjection(found), limit)
    : judged(timed, "fail", describeInjection(found));
}

/** An acknowledgment of an ad, or its repeat. */
export function judgeDelivery(timed: TimedReply): Judgement {
  const outcome = outcomeOf(timed);
  const limit = `${timed.limitMs} ms (DELIVERY_TIMEOUT_MS)`;
  if (timed.durationMs > timed.limitMs) {
    const text = describeDelivery({ kind: "ambiguous", code: "timeout" });
    return judged(timed, "fail", `too late. After ${limit} it is ${text}`);
  }
  return outcome.kind === "delivered"
    ? judgedByTime(timed, describeDelivery(outcome), limit)
    : judged(timed, "fail", describeDelivery(outcome));
}

/** An acknowledgment of an id that the provider never gave. */
export function judgeUnknownId(timed: TimedReply): Judgement {
  const outcome = outcomeOf(timed);
  const text = describeDelivery(outcome);
  if (outcome.kind === "dead" && outcome.reason === "http_404") {
    return judged(timed, "ok", text);
  }
  return outcome.kind === "delivered"
    ? judged(timed, "warn", `${text} Nobody would notice a wrong id.`)
    : judged(timed, "warn", advised(timed, text, '404 with {"code": …}'));
}

/** An acknowledgment of the id of a 201 or 202. */
export function judgeUnfilledId(timed: TimedReply): Judgement {
  const outcome = outcomeOf(timed);
  const text = describeDelivery(outcome);
  return outcome.kind === "refused"
    ? judged(timed, "ok", text)
    : judged(timed, "warn", advised(timed, text, "406"));
}

/** An injection with a wrong key. */
export function judgeWrongKeyInjection(timed: TimedReply): Judgement {
  const found = classifyInjection(timed.reply);
  const isRefused = found.kind === "fallback" && found.reason === "unauthorized";
  const text = describeInjection(found);
  return judged(timed, isRefused ? "ok" : "warn", isRefused ? text : advised(timed, text, "401"));
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
  return judged(timed, isHarmful ? "fail" : "warn", advised(timed, text, "401"));
}

function outcomeOf({ reply }: TimedReply): DeliveryOutcome {
  return classifyDelivery(reply, Date.now());
}

/** Another status is no advice on a call without an answer. */
function advised({ reply }: TimedReply, text: string, better: string): string {
  return reply.kind === "failed" ? text : `${text} Better: ${better}.`;
}

/** An answer that takes more of its limit than this is close to it: a busy hour may take the rest. */
const CLOSE_SHARE = 0.75;

/** A good answer, with a warning if it came late. */
function judgedByTime(timed: TimedReply, text: string, limit: string): Judgement {
  return timed.durationMs > CLOSE_SHARE * timed.limitMs
    ? judged(timed, "warn", `${text} It is close to the limit of ${limit}.`)
    : judged(timed, "ok", text);
}

function judged({ reply, durationMs }: TimedReply, status: Judgement["status"], text: string): Judgement {
  return { status, detail: `${nameOf(reply)} after ${Math.round(durationMs)} ms: ${text}` };
}

function nameOf(reply: ProviderReply): string {
  if (reply.kind === "answered") {
    return String(reply.status);
  }
  return reply.cause === undefined ? reply.code : `${reply.code} (${reply.cause})`;
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

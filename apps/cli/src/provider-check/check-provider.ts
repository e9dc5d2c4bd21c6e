/** Tries a provider end to end: an ad, its acknowledgment, a repeat, and what must be turned away. */
import type { DoctorCheck } from "@adrelay/contract";
import { classifyInjection } from "@adrelay/core";
import { type ProviderTarget, postAcknowledgment, postInjection, type TimedReply } from "./call-provider.ts";
import {
  hindranceOf,
  judgeDelivery,
  judgeInjection,
  judgeUnfilledId,
  judgeUnknownId,
  judgeWrongKeyDelivery,
  judgeWrongKeyInjection,
} from "./judge-replies.ts";

/** The prompts of the two injections: one that should get an ad, one that shouldn't. */
export interface CheckPrompts {
  readonly prompt: string;
  readonly promptWithoutAd: string;
}

/** It doesn't mention the ad, so that a provider charges nobody for it. */
const ANSWER_TEXT = "This answer only checks the connection.";

/** Yields each check once it is done. */
export async function* checkProvider(
  target: ProviderTarget,
  { prompt, promptWithoutAd }: CheckPrompts,
): AsyncGenerator<DoctorCheck> {
  const withAd = await postInjection(target, injectionOf(prompt));
  yield { name: "injection", ...judgeInjection(withAd) };
  const hindrance = hindranceOf(withAd.reply);
  if (hindrance !== undefined) {
    yield notTried("all other checks", hindrance);
    return;
  }
  const withoutAd = await postInjection(target, injectionOf(promptWithoutAd));
  yield { name: "injection without an ad", ...judgeInjection(withoutAd) };
  const replies = [withAd, withoutAd];
  yield* checkAd(target, idOf(replies, true), whyNoId(withAd, "injection", NO_AD));
  yield* checkUnfilled(
    target,
    idOf(replies, false),
    whyNoId(withoutAd, "injection without an ad", NO_UNFILLED),
  );
  const unknown = await acknowledge(target, crypto.randomUUID());
  yield { name: "acknowledgment of an unknown id", ...judgeUnknownId(unknown) };
  yield* checkWrongKey({ ...target, key: `wrong-key-${crypto.randomUUID()}` }, prompt);
}

const NO_AD = "no injection got an ad. Name a prompt that gets one with --prompt.";
const NO_UNFILLED =
  "no 201 or 202 had an ad_response_id. Name a prompt that gets no ad with --prompt-without-ad.";

/** Another prompt doesn't help if the answer to this one was not as it must be. */
function whyNoId({ reply }: TimedReply, name: string, advice: string): string {
  return classifyInjection(reply).kind === "enhancement"
    ? advice
    : `the check "${name}" got no usable answer. Its line says why.`;
}

async function* checkAd(
  target: ProviderTarget,
  id: string | undefined,
  whyNoId: string,
): AsyncGenerator<DoctorCheck> {
  if (id === undefined) {
    yield notTried("acknowledgment", whyNoId);
    return;
  }
  const ackId = crypto.randomUUID();
  yield { name: "acknowledgment", ...judgeDelivery(await acknowledge(target, id, ackId)) };
  yield { name: "the same acknowledgment again", ...judgeDelivery(await acknowledge(target, id, ackId)) };
}

async function* checkUnfilled(
  target: ProviderTarget,
  id: string | undefined,
  whyNoId: string,
): AsyncGenerator<DoctorCheck> {
  const name = "acknowledgment of a 201 or 202";
  yield id === undefined
    ? notTried(name, whyNoId)
    : { name, ...judgeUnfilledId(await acknowledge(target, id)) };
}

async function* checkWrongKey(target: ProviderTarget, prompt: string): AsyncGenerator<DoctorCheck> {
  const injected = await postInjection(target, injectionOf(prompt));
  yield { name: "injection with a wrong key", ...judgeWrongKeyInjection(injected) };
  const acknowledged = await acknowledge(target, crypto.randomUUID());
  yield { name: "acknowledgment with a wrong key", ...judgeWrongKeyDelivery(acknowledged) };
}

function notTried(name: string, why: string): DoctorCheck {
  return { name, status: "warn", detail: `not tried: ${why}` };
}

function acknowledge(target: ProviderTarget, id: string, ackId: string = crypto.randomUUID()) {
  return postAcknowledgment(target, { id, ackId, text: ANSWER_TEXT });
}

/** The id of the first reply with an ad, or of the first one without. */
function idOf(replies: readonly TimedReply[], isFilled: boolean): string | undefined {
  return replies
    .map(({ reply }) => classifyInjection(reply))
    .filter((found) => found.kind === "enhancement")
    .find(({ outcome, adResponseId }) => (outcome === "ok") === isFilled && adResponseId !== undefined)
    ?.adResponseId;
}

/** The address is one of those that are reserved for documentation (RFC 5737). */
function injectionOf(prompt: string) {
  const session = `adrelay-check-${crypto.randomUUID()}`;
  return {
    prompt,
    request_context: { session_id: session, user_agent: "adrelay provider check", user_ip: "203.0.113.7" },
  };
}

/** What must hold of the calls that answer tool calls: each has the ad of its turn, and none asks for a new one. */
import type { Check } from "../checks/check.ts";
import { callsOf, checkEach, type MadeCall, REFUSED_AD } from "./call-checks.ts";
import type { TurnsEvidence } from "./evidence.ts";
import { TURN_WAIT_MS } from "./loops.ts";
import { wasStoreAway } from "./losses.ts";
import { hasAd } from "./pieces.ts";
import type { CallRecord } from "./stream-call.ts";
import { modelFaultsOf } from "./streams.ts";

/** A next step whose caller got its headers. */
interface NextStep extends MadeCall {
  readonly answers: CallRecord;
  readonly headersAtMs: number;
}

export function checkLoops(evidence: TurnsEvidence): readonly Check[] {
  const nextSteps = callsOf(evidence.streams).flatMap(({ plan, call }): NextStep[] => {
    const { answers, headersAtMs } = call;
    return answers === undefined || headersAtMs === undefined ? [] : [{ plan, call, answers, headersAtMs }];
  });
  const checkSteps = (
    name: string,
    concerns: (step: NextStep) => boolean,
    rule: (step: NextStep) => string | undefined,
  ) => {
    const wrongOf = new Map(nextSteps.filter(concerns).map((step) => [step.call, rule(step)]));
    return checkEach(name, nextSteps.filter(concerns), ({ call }) => wrongOf.get(call));
  };
  return [
    checkSteps(
      "a next step has no other ad than its turn's",
      ({ call }) => call.adResponseId !== undefined,
      (step) =>
        step.call.adResponseId === adBefore(step.call) || isOfStreamBefore(step, evidence)
          ? undefined
          : `${step.call.adResponseId} in place of ${adBefore(step.call)}`,
    ),
    checkSteps(
      "a next step finds its turn while that is open",
      ({ plan, answers }) => plan.acknowledges === "proxy" && hasAd(answers),
      (step) =>
        step.call.adResponseId !== undefined || isExcused(step, evidence)
          ? undefined
          : `told ${step.call.ad}`,
    ),
    checkAdCalls(evidence),
  ];
}

/** If a step had no ad, the next one may find that of an earlier step by the same ids. */
function adBefore({ answers }: CallRecord): string | undefined {
  return answers && (answers.adResponseId ?? adBefore(answers));
}

/** Only first steps ask for ads, each of their calls for one at the most. */
function checkAdCalls({ streams, sold }: TurnsEvidence): Check {
  const count = <T>(items: readonly T[], isCounted: (item: T) => boolean) => items.filter(isCounted).length;
  const sessions = [...new Set(streams.map(({ plan }) => plan.session))];
  const broken = sessions.flatMap((session) => {
    const ads = count([...sold.values()], (ad) => ad.session === session);
    const firsts = count(
      callsOf(streams),
      ({ plan, call }) => plan.session === session && call.answers === undefined,
    );
    return ads > firsts ? [`${session}: ${ads} ads for ${firsts} first calls`] : [];
  });
  return { name: "no next step asks for an ad", checked: sessions.length, broken };
}

/**
 * Two turns of a session with the same text and the same ids are told apart by which is the later one. If that one has no ad, or Redis
 * couldn't be told of its calls, a next step of it may find the earlier one, if that still waits.
 */
function isOfStreamBefore({ plan, call, answers, headersAtMs }: NextStep, evidence: TurnsEvidence): boolean {
  const before = evidence.streams.find((stream) => stream.plan.number === plan.follows);
  const isOfBefore = before?.calls.some(({ adResponseId }) => adResponseId === call.adResponseId) === true;
  const time = { fromMs: answers.startedAtMs, untilMs: headersAtMs };
  return isOfBefore && (!hasAd(answers) || wasStoreAway(answers.proxy, time, evidence.spans));
}

/** The wait begins a moment before the caller sees the end of the step. */
const WAIT_SLACK_MS = 300;

const STORE_AWAY_AD = "fallback; reason=store_unavailable";

function isExcused(step: NextStep, { streams, spans, redisAway }: TurnsEvidence): boolean {
  const { plan, call, answers, headersAtMs } = step;
  const time = { fromMs: answers.startedAtMs, untilMs: headersAtMs };
  return (
    headersAtMs - answers.endedAtMs > TURN_WAIT_MS - WAIT_SLACK_MS ||
    [call.proxy, answers.proxy].some((proxy) => wasStoreAway(proxy, time, spans)) ||
    (call.ad === STORE_AWAY_AD &&
      redisAway.some(
        ({ app, atMs }) => app === call.proxy && atMs >= time.fromMs && atMs <= call.endedAtMs,
      )) ||
    // Its calls are read after they have been decoded.
    modelFaultsOf(plan, answers).includes("gzip") ||
    callsOf(streams).some((other) => other.plan === plan && mayHaveEnded(other.call, step))
  );
}

/** Whether another call of the same turn may have ended it before. */
function mayHaveEnded(other: CallRecord, { call, answers, headersAtMs }: NextStep): boolean {
  const { adResponseId, status = 0, end, callIds, endedAtMs } = other;
  const isOfTurn =
    other !== call &&
    (adResponseId === answers.adResponseId || other.headersAtMs === undefined) &&
    other.startedAtMs < headersAtMs;
  const isRepeatable = status === 429 || status >= 500;
  const isFinal = callIds.length === 0 && endedAtMs <= headersAtMs && !isRepeatable;
  // A caller that hung up, or whose answer broke, needn't have read what was written to it.
  return isOfTurn && (other.ad === REFUSED_AD || (isFinal && (end === "whole" || other.modelText !== "")));
}

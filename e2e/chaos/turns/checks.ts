/** What must hold of each turn at the end of a run. */
import { acknowledgedOf } from "@adrelay/store";
import type { Check } from "../checks/check.ts";
import { checkCalls } from "./call-checks.ts";
import { describeTurn } from "./describe.ts";
import type { TurnEvidence, TurnsEvidence } from "./evidence.ts";
import { checkLoops } from "./loop-checks.ts";
import { lossOf } from "./losses.ts";
import { hasAd, readPieces } from "./pieces.ts";
import { ACK_DEADLINE_MS } from "./stack.ts";
import type { CallRecord } from "./stream-call.ts";
import { stepOf } from "./streams.ts";

type Rule = (turn: TurnEvidence) => string | undefined;

export function checkTurns(evidence: TurnsEvidence): readonly Check[] {
  const { turns, spans } = evidence;
  const check = (name: string, concerns: (turn: TurnEvidence) => boolean, rule: Rule): Check => {
    const checked = turns.filter(concerns);
    const broken = checked.flatMap((turn) => {
      const wrong = rule(turn);
      return wrong === undefined ? [] : [`${turn.id}: ${wrong}; ${describeTurn(turn)}`];
    });
    return { name, checked: checked.length, broken };
  };
  const textFault: Rule = (turn) => tooShort(turn, (call) => lossOf(turn, call, spans).charsLeast);
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
    check("an acknowledged text is of its steps, in their order", isOfProxy, pieceFault),
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
    ...checkCalls(evidence),
    ...checkLoops(evidence),
  ];
}

/** A caller was told of it, so it was put into a prompt. */
const isKnown = ({ calls }: TurnEvidence) => calls.length > 0;
const isOfProxy = ({ plan, sent, posts }: TurnEvidence) =>
  plan.acknowledges === "proxy" && sent.length === 0 && posts > 0;

function isLong(turn: TurnEvidence): boolean {
  const beganAtMs = Math.min(...turn.calls.map(({ startedAtMs }) => startedAtMs));
  return (
    turn.plan.acknowledges === "proxy" &&
    turn.calls.some(({ arrivals }) => (arrivals.at(-1)?.atMs ?? 0) - beganAtMs > ACK_DEADLINE_MS)
  );
}

const stateFault: Rule = ({ entry }) =>
  entry?.state === "delivered" ? undefined : (entry?.state ?? "unknown to the ledger");

/** An ad that never reached a prompt may be abandoned, or unknown because the proxy died before it was booked. */
const missedFault: Rule = ({ entry }) => {
  const isLate = entry !== undefined && acknowledgedOf(entry)?.isLate === true;
  return entry?.state === "missed" || isLate ? "missed" : undefined;
};

const pieceFault: Rule = (turn) => {
  const [text = ""] = turn.postedTexts;
  const pieces = readPieces(turn, text);
  return pieces.kind === "faulty" ? `${pieces.why}, of ${text.length} in all` : undefined;
};

const refusalFault: Rule = ({ postedTexts }) =>
  postedTexts.some((text) => text !== "") ? "acknowledged with a text" : undefined;

/** The proxy's text is of the turn's steps, too. */
const backendFault: Rule = (turn) =>
  turn.postedTexts.every(
    (posted) => turn.sent.some(({ text }) => text === posted) || readPieces(turn, posted).kind === "read",
  )
    ? undefined
    : "neither text was posted";

/**
 * Many small pieces for a slow reader are one write of a socket. It isn't confirmed before its last byte is taken, and what isn't
 * confirmed when the answer is cut doesn't count.
 */
function wasCutOffSlowly(call: CallRecord): boolean {
  return call.attempt === 0 && stepOf(call.plan, call).caller.kind === "slow" && call.end === "broken";
}

function tooShort(turn: TurnEvidence, leastOf: (call: CallRecord) => number): string | undefined {
  const pieces = readPieces(turn, turn.postedTexts[0] ?? "");
  if (pieces.kind === "faulty") {
    // Another check says so.
    return undefined;
  }
  const short = turn.calls.filter(hasAd).flatMap((call) => {
    const [kept, least] = [pieces.texts.get(call)?.length ?? 0, wasCutOffSlowly(call) ? 0 : leastOf(call)];
    return kept < least ? [`of step ${call.step} ${kept} characters are acknowledged, not ${least}`] : [];
  });
  return short.length === 0 ? undefined : short.join(", ");
}

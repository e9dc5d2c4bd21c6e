/** Finds the turn that a call belongs to, and joins it, within a limit of time whatever Redis does. */
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { JoinedTurn, Turns } from "@adrelay/store";
import { retryWaitMs } from "./turn-step.ts";

export interface JoinQuestion {
  /** What the turn may be found by; the first that leads to a turn counts. */
  readonly pointers: readonly string[];
  readonly token: string;
  /** A turn with a running step isn't joined: two equal calls at once are two turns. */
  readonly isRetry: boolean;
  readonly timeoutMs: number;
}

/** `unavailable`: Redis didn't answer in time. */
export type FoundTurn = JoinedTurn | { readonly kind: "unavailable" };

export interface JoinDeps {
  readonly turns: Pick<Turns, "catchUp" | "join" | "endStep">;
  /** Takes over work that nobody waits for. */
  readonly pending: { add(work: Promise<void>): void };
  readonly turnWaitMs: number;
}

/** A call can answer several tool calls. All of a turn's ids are stored, so a few questions find it. */
const QUESTIONS_MAX = 8;

/**
 * The hold of a tool call is sent before its caller has the call. But a Redis that was busy may read this question first, which came
 * by another connection. Then it knows no turn, or an earlier one with the same ids. So a next step first lets Redis catch up.
 */
export async function joinTurn(deps: JoinDeps, question: JoinQuestion): Promise<FoundTurn> {
  const { pointers, token, isRetry, timeoutMs } = question;
  const deadlineMs = performance.now() + timeoutMs;
  if (!(isRetry || (await hasCaughtUp(deps, timeoutMs)))) {
    return { kind: "unavailable" };
  }
  let found: FoundTurn = { kind: "unknown" };
  for (const pointer of pointers.slice(0, QUESTIONS_MAX)) {
    const answer = deps.turns.join({ pointer, token, isRetry });
    const joined = await answerWithin(deps, answer, deadlineMs - performance.now());
    if (joined.kind === "joined" || joined.kind === "unavailable") {
      return joined;
    }
    found = joined.kind === "ended" ? joined : found;
  }
  return found;
}

async function hasCaughtUp({ turns }: JoinDeps, timeoutMs: number): Promise<boolean> {
  const known = turns.catchUp().then(
    () => true,
    () => false,
  );
  return (await withDeadline(known, Math.max(timeoutMs, 0))) === true;
}

async function answerWithin(
  deps: JoinDeps,
  answer: Promise<JoinedTurn>,
  timeoutMs: number,
): Promise<FoundTurn> {
  const known = answer.catch(() => ({ kind: "unavailable" }) as const);
  const result = await withDeadline(known, Math.max(timeoutMs, 0));
  if (result !== OVERDUE) {
    return result;
  }
  deps.pending.add(known.then((late) => leaveTurn(deps, late)));
  return { kind: "unavailable" };
}

/** The call went on without its turn. The turn waits on as if the step had written nothing. Without Redis, its lease ends it. */
async function leaveTurn({ turns, turnWaitMs }: JoinDeps, late: FoundTurn): Promise<void> {
  if (late.kind === "joined") {
    const { step } = late;
    const waitMs = retryWaitMs(turnWaitMs);
    await turns.endStep({ step, sequence: 1, text: "", waitMs, outcome: "cut" }).catch(() => {});
  }
}

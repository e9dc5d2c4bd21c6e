/**
 * A turn is one user message and its answer, in one or several calls of the model: the steps of a tool loop.
 *
 * 1. A turn has one ad, and all its steps get the same prompt. It is acknowledged once, with the texts of its steps.
 * 2. A step belongs to a turn only by the mark on a tool call of the turn's own answer, below the same user text.
 * 3. A turn has at most one running step. Between its steps it waits here, under the key by which the next call finds it.
 * 4. A turn ends with the first step without an open tool call, with an error, or with an abort. One that waits in vain
 *    ends after a while, if too many wait, or when the relay's client closes.
 * 5. After an error within the answer, the AI SDK may repeat the step at once (`streamRetries`). So the turn waits a little, and
 *    the repeated step has the same ad. What the consumer was given of the failed one stays in its text.
 */
import { startTimer } from "../limits.ts";
import type { ShownText } from "../shown-text.ts";
import type { AnswerWatcher } from "../watch-answer.ts";
import { type AnswerPart, markCall, textOfPart } from "./prompt.ts";

export interface Turn {
  /** The user's own text. */
  readonly text: string;
  /** The prompt with the ad. */
  readonly prompt: string;
  readonly adResponseId: string;
  readonly shown: ShownText<string>;
  /** How the next call finds it: by its request, if the first step is repeated, later by its ad response. */
  key: string;
  hasText: boolean;
}

/** A key below which a call finds its turn. A call with another text finds none. */
export const keyOf = (mark: string | undefined, text: string) => `${mark}\n${text}`;

/** How long a turn waits after an error within its answer. The AI SDK repeats a step without a pause. */
const REPEAT_WAIT_MS = 5000;

/** The turns that wait for their next call. */
export interface WaitingTurns {
  /** `limitMs`: it ends after so long. */
  add(turn: Turn, limitMs?: number): void;
  /** Takes a turn out, so that no second call gets it. */
  claim(key: string): Turn | undefined;
}

export function makeWaitingTurns(max: number): WaitingTurns {
  const turns = new Map<string, Waiting>();
  const claim = (key: string) => {
    const found = turns.get(key);
    turns.delete(key);
    found?.stopTimer();
    return found?.turn;
  };
  return {
    add: (turn, limitMs) => {
      const { key, shown } = turn;
      claim(key)?.shown.settle();
      const stopTimer = limitMs === undefined ? () => {} : startTimer(limitMs, shown.settle);
      turns.set(key, { turn, stopTimer });
      // It ends the wait for the model, so that the time without a chunk counts from here.
      shown.add("");
      void shown.settled.then(() => turns.get(key)?.turn === turn && claim(key));
      if (turns.size > max) {
        const [oldest] = turns.values();
        oldest?.turn.shown.settle();
      }
    },
    claim,
  };
}

interface Waiting {
  readonly turn: Turn;
  readonly stopTimer: () => void;
}

/** One call of the model within a turn. */
export interface Step extends AnswerWatcher<AnswerPart> {
  /** The same part; a tool call with a mark, by which the next step finds this turn. */
  mark<Part extends AnswerPart>(part: Part): Part;
  /** `isContinued`: another call of the turn is expected. */
  end(isContinued: boolean): void;
}

export function makeStep(turn: Turn, waiting: WaitingTurns, signal: AbortSignal | undefined): Step {
  const { shown, text, adResponseId } = turn;
  const { settle, settled } = shown;
  /** Tool calls without a result. */
  const openCalls = new Set<string>();
  let separator = turn.hasText ? "\n\n" : "";
  let isFinished = false;
  let hasFailed = false;
  // It stays while the turn waits: the user may stop the answer while a tool runs.
  signal?.addEventListener("abort", settle);
  void settled.then(() => signal?.removeEventListener("abort", settle));
  shown.ask();
  let isOver = false;
  /** Once: a stream can tell its end twice, and by then the next step may have the turn. */
  const end = (isContinued: boolean, limitMs?: number) => {
    if (isOver) {
      return;
    }
    isOver = true;
    isContinued && signal?.aborted !== true ? waiting.add(turn, limitMs) : settle();
  };
  return {
    ask: () => shown.ask(),
    add: (part) => {
      const delta = textOfPart(part);
      if (delta !== "") {
        shown.add(separator + delta);
        separator = "";
        turn.hasText = true;
        return;
      }
      if (part.type === "tool-call") {
        openCalls.add(part.toolCallId);
      } else if (part.type === "tool-result") {
        // Of a tool that the provider ran itself.
        openCalls.delete(part.toolCallId);
      } else if (part.type === "error") {
        hasFailed = true;
      } else if (part.type === "finish") {
        hasFailed &&= part.finishReason.unified === "error";
        isFinished = part.finishReason.unified !== "error";
      }
      shown.add("");
    },
    mark: (part) => markCall(part, adResponseId),
    end,
    /** The step is over: at its end, or because the consumer or the model broke off. */
    settle: () => {
      const isContinued = isFinished && openCalls.size > 0;
      if (isContinued && !isOver) {
        turn.key = keyOf(adResponseId, text);
      }
      end(isContinued || hasFailed, hasFailed ? REPEAT_WAIT_MS : undefined);
    },
  };
}

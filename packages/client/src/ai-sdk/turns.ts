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
import type { Injected } from "../injection.ts";
import type { ShownText } from "../shown-text.ts";
import type { AnswerWatcher } from "../watch-answer.ts";
import { type AnswerPart, markCall, textOfPart } from "./prompt.ts";

export interface Turn {
  readonly injected: Injected;
  /** The user's own text. */
  readonly text: string;
  readonly shown: ShownText<string>;
  /** How the next call finds it: by its request, if the first step is repeated, later by its ad response. */
  key: string;
  /** What comes between the text so far and that of the next step. */
  separator: string;
  /** Ends a wait that is short. */
  timer?: ReturnType<typeof setTimeout> | undefined;
}

/** A key below which a call finds its turn. A call with another text finds none. */
export const keyOf = (mark: string | undefined, text: string) => `${mark}\n${text}`;

/** How long a turn waits after an error within its answer. The AI SDK repeats a step without a pause. */
const REPEAT_WAIT_MS = 5000;

/** The turns that wait for their next call. */
export interface WaitingTurns {
  /** `isShort`: it waits only for a call that is repeated at once. */
  add(turn: Turn, isShort: boolean): void;
  /** Takes a turn out, so that no second call gets it. */
  claim(key: string): Turn | undefined;
}

export function makeWaitingTurns(max: number): WaitingTurns {
  const turns = new Map<string, Turn>();
  const claim = (key: string) => {
    const turn = turns.get(key);
    turns.delete(key);
    clearTimeout(turn?.timer);
    return turn;
  };
  return {
    add: (turn, isShort) => {
      const { key, shown } = turn;
      claim(key)?.shown.settle();
      turn.timer = isShort ? setTimeout(shown.settle, REPEAT_WAIT_MS) : undefined;
      turns.set(key, turn);
      // It ends the wait for the model, so that the time without a chunk counts from here.
      shown.add("");
      void shown.settled.then(() => turns.get(key) === turn && claim(key));
      if (turns.size > max) {
        const [oldest] = turns.values();
        oldest?.shown.settle();
      }
    },
    claim,
  };
}

/** One call of the model within a turn. */
export interface Step extends AnswerWatcher<AnswerPart> {
  /** The same part; a tool call with a mark, by which the next step finds this turn. */
  mark<Part extends AnswerPart>(part: Part): Part;
  /** The step is over: at its end, or because the consumer or the model broke off. `isRepeated`: its call comes again. */
  settle(isRepeated?: boolean): void;
}

export function makeStep(turn: Turn, waiting: WaitingTurns, signal: AbortSignal | undefined): Step {
  const { shown, injected } = turn;
  const { settle } = shown;
  /** Tool calls without a result. */
  const openCalls = new Set<string>();
  let { separator } = turn;
  let isFinished = false;
  let hasFailed = false;
  let isOver = false;
  // It stays while the turn waits: the user may stop the answer while a tool runs.
  signal?.addEventListener("abort", settle);
  void shown.settled.then(() => signal?.removeEventListener("abort", settle));
  shown.ask();
  return {
    ask: () => shown.ask(),
    add: (part) => {
      const delta = textOfPart(part);
      if (delta !== "") {
        turn.separator = "\n\n";
      } else if (part.type === "tool-call") {
        openCalls.add(part.toolCallId);
      } else if (part.type === "tool-result") {
        // Of a tool that the provider ran itself.
        openCalls.delete(part.toolCallId);
      } else if (part.type === "error") {
        hasFailed = true;
      } else if (part.type === "finish" && part.finishReason.unified !== "error") {
        isFinished = true;
        hasFailed = false;
      }
      shown.add(delta && separator + delta);
      separator = delta ? "" : separator;
    },
    mark: (part) => markCall(part, injected.adResponseId),
    settle: (isRepeated = hasFailed) => {
      // A stream can tell its end twice, and by then the next step may have the turn.
      if (isOver) {
        return;
      }
      isOver = true;
      const hasOpenCalls = isFinished && openCalls.size > 0;
      if (hasOpenCalls) {
        turn.key = keyOf(injected.adResponseId, turn.text);
      }
      (hasOpenCalls || isRepeated) && !signal?.aborted ? waiting.add(turn, hasFailed) : settle();
    },
  };
}

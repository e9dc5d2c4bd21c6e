/** What the stream tells of one step, put into what the journal must do. */
import type { StepEnd } from "@adrelay/core";
import type { EventReading } from "../dialects/dialect.ts";
import type { StepSink } from "../http/call.ts";
import { decideEnd } from "./decide-end.ts";
import type { JournaledStep } from "./journaled-step.ts";

const RETRY_WAIT_MAX_MS = 120_000;

/** How long a turn waits for the retry of a call of which nothing was written: not longer than for a next step. */
export function retryWaitMs(turnWaitMs: number): number {
  return Math.min(RETRY_WAIT_MAX_MS, turnWaitMs);
}

/** More tool calls in one answer than a client can work on; each costs a key of Redis. */
const CALLS_MAX = 128;

export interface TurnStepOptions {
  readonly journaled: Pick<JournaledStep, "add" | "hold" | "endStep" | "settle">;
  readonly pointerOfCall: (callId: string) => string;
  /** What a retry of this call is found by; undefined if it is found by the tool calls that it answers. */
  readonly bodyPointer: string | undefined;
  readonly turnWaitMs: number;
}

export class TurnStep implements StepSink {
  readonly readsAnswer = true;
  readonly #options: TurnStepOptions;
  readonly #callIds = new Set<string>();
  #wroteText = false;
  #wroteCalls = false;
  #isOver = false;

  constructor(options: TurnStepOptions) {
    this.#options = options;
  }

  /** The model has never seen the ad, so its answer can't have used it. */
  refused(_status: number): void {
    this.#end(() => this.#options.journaled.settle("failed"));
  }

  written({ text, callIds }: EventReading): void {
    if (this.#isOver) {
      return;
    }
    if (text !== "") {
      this.#wroteText = true;
      this.#options.journaled.add(text);
    }
    if (callIds.length > 0) {
      this.#wroteCalls = true;
      this.sawCalls(callIds);
    }
  }

  sawCalls(callIds: readonly string[]): void {
    const added = callIds.filter((id) => !this.#callIds.has(id)).slice(0, CALLS_MAX - this.#callIds.size);
    if (this.#isOver || added.length === 0) {
      return;
    }
    for (const id of added) {
      this.#callIds.add(id);
    }
    const { journaled, pointerOfCall, turnWaitMs } = this.#options;
    journaled.hold({ pointers: added.map(pointerOfCall), waitMs: turnWaitMs, awaits: "next_step" });
  }

  ended(end: StepEnd, status: number | undefined): void {
    this.#end(() => {
      const { journaled, bodyPointer, turnWaitMs } = this.#options;
      const facts = { end, status, wroteText: this.#wroteText, wroteCalls: this.#wroteCalls };
      const { kind, outcome } = decideEnd(facts);
      switch (kind) {
        case "settle":
          journaled.settle(outcome);
          return;
        case "wait_for_next_step":
          journaled.endStep({ waitMs: turnWaitMs, outcome });
          return;
        case "wait_for_retry": {
          const waitMs = retryWaitMs(turnWaitMs);
          if (bodyPointer !== undefined) {
            journaled.hold({ pointers: [bodyPointer], waitMs, awaits: "retry" });
          }
          journaled.endStep({ waitMs, outcome });
          return;
        }
        default:
          kind satisfies never;
      }
    });
  }

  /** The first end counts. */
  #end(end: () => void): void {
    if (!this.#isOver) {
      this.#isOver = true;
      end();
    }
  }
}

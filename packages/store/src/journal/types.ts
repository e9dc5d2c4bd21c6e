/** What the model proxy, and the sweep, may do with turns. */
import type { AdResponseId, DeliveryJob, PublisherId } from "@adrelay/contract";
import type { DialectName, Finding, TurnAd, TurnOutcome } from "@adrelay/core";

/** How long a step runs without a sign of life before its turn may be settled. journal/turn.lua has the same number. */
export const TURN_LEASE_MS = 20_000;

interface TurnRef {
  readonly id: AdResponseId;
  readonly publisher: PublisherId;
}

/** One step of a turn, as the store has numbered it. */
export interface StepRef extends TurnRef {
  readonly step: number;
}

export type NewTurn = NewTurnBase &
  (
    | {
        readonly kind: "journaled";
        /** What is looked for in the turn's text; without it, the finding is unknown. The journal forgets it with the turn. */
        readonly ad?: TurnAd | undefined;
      }
    /** The backend acknowledges by itself until the deadline. The turn is over at once, with the outcome `manual`. */
    | { readonly kind: "manual"; readonly deadlineMs: number }
  );

interface NewTurnBase extends TurnRef {
  readonly dialect: DialectName;
  /** Random, made by the proxy. The same token again gets the same answer. */
  readonly token: string;
  /** The session's hash, by which an erasure finds it; undefined if the installation keeps none. */
  readonly session: string | undefined;
}

export type OpenedTurn =
  | { readonly kind: "opened"; readonly step: StepRef }
  /** The ledger knows the id already, so this ad can't be used. */
  | { readonly kind: "known" };

/** How a step can end by itself. */
export type StepOutcome = Extract<TurnOutcome, "complete" | "cut" | "failed">;

/** One write of a step. Sequences start at 1; a repeated or older one changes nothing but the lease. */
export interface StepWrite {
  readonly step: StepRef;
  readonly sequence: number;
  /** Undefined to renew only the lease. */
  readonly text: string | undefined;
}

/**
 * What became of one write. `behind`: Redis came back older than it was, and has lost earlier pieces of the step. It appends no more
 * of them, so that no text has a hole. An error is of this write alone; the others of the same call aren't touched by it.
 */
export type WriteAnswer = "alive" | "ended" | "behind" | Error;

export interface HeldTurn {
  readonly step: StepRef;
  /** Which of the step's holds it is, from 1 on. The same again begins no wait. */
  readonly number: number;
  /** The enhanced prompt, for the next step or the retry. */
  readonly prompt: string;
  /** What a later call is found by: see `pointers` in the proxy. */
  readonly pointers: readonly string[];
  readonly waitMs: number;
  /** A turn that waits for a next step is found by no retry: its answer was written in part. */
  readonly awaits: "next_step" | "retry";
}

/**
 * What became of a hold. `bare`: the turn waits, but no step can join it, because its prompt is very long or the prompts of its
 * publisher's turns take too much of Redis' memory. `ended`: the turn is over.
 */
export type HeldKind = "held" | "bare" | "ended";

export interface JoinQuestion {
  readonly pointer: string;
  /** Random, made by the proxy. The same token again gets the same step. */
  readonly token: string;
  /** The turn must wait for a retry, or it is `unknown`: two equal calls at once are two turns. */
  readonly isRetry?: boolean;
}

export type JoinedTurn =
  | { readonly kind: "joined"; readonly step: StepRef; readonly prompt: string }
  /** No turn has such a pointer. */
  | { readonly kind: "unknown" }
  /** Its turn is over. */
  | { readonly kind: "ended" };

export interface EndedStep {
  readonly step: StepRef;
  /** `=`: the text is all that the step has written. */
  readonly sequence: number | "=";
  /** What was written and not appended yet. */
  readonly text: string;
  readonly waitMs: number;
  /** The turn's outcome if its wait passes. */
  readonly outcome: StepOutcome;
}

export interface FinalStep {
  readonly step: StepRef;
  readonly outcome: StepOutcome;
  /** All that this step has written, whatever was appended before. */
  readonly text: string;
  /** What was found in this text. It counts if the turn has no other step; otherwise the whole turn's text is searched. */
  readonly finding?: Finding | undefined;
  readonly requestId: string;
  readonly traceparent: DeliveryJob["traceparent"];
}

export type SettledTurn = "queued" | "abandoned" | "ended" | "open";

export interface Turns {
  /** Records the injection with the outcome `ok`, and opens its turn with step 1. Rejects on a full Redis. */
  open(turn: NewTurn): Promise<OpenedTurn>;
  /** All writes of this process in one call. One answer for each. */
  write(writes: readonly StepWrite[]): Promise<readonly WriteAnswer[]>;
  hold(turn: HeldTurn): Promise<HeldKind>;
  /** Resolves once Redis has read what other connections had sent it before this call. Rejects if it doesn't answer. */
  catchUp(): Promise<void>;
  join(question: JoinQuestion): Promise<JoinedTurn>;
  /**
   * The step is over and the turn isn't. `ended`: the turn is over as well, or it is to be settled now. `behind`: as of a write; the
   * step goes on until it ends with its whole text.
   */
  endStep(ended: EndedStep): Promise<"waiting" | "ended" | "behind">;
  /**
   * Queues the acknowledgment if no other step is alive. `open`: another one is, and Redis has this step's text.
   * The step of a manual turn has no text: it queues an empty acknowledgment unless the backend has acknowledged.
   * `abandoned`: the turn has no text, and its publisher's empty answers are abandoned.
   */
  settle(final: FinalStep): Promise<SettledTurn>;
}

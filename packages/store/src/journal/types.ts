/** What the model proxy, and the sweep, may do with turns. */
import type { AdResponseId, DeliveryJob, PublisherId } from "@adrelay/contract";
import type { DialectName, TurnOutcome } from "@adrelay/core";

export interface TurnRef {
  readonly id: AdResponseId;
  readonly publisher: PublisherId;
}

/** One step of a turn, as the store has numbered it. */
export interface StepRef extends TurnRef {
  readonly step: number;
}

export interface NewTurn extends TurnRef {
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

/** One write of a step. Sequences start at 1; a repeated or older one changes nothing but the lease. */
export interface StepWrite {
  readonly step: StepRef;
  readonly sequence: number;
  /** Undefined to renew only the lease. */
  readonly text: string | undefined;
}

export interface HeldTurn {
  readonly step: StepRef;
  /** The enhanced prompt, for the next step or the retry. */
  readonly prompt: string;
  /** What a later call is found by: see `pointers` in the proxy. */
  readonly pointers: readonly string[];
  readonly waitMs: number;
}

export type JoinedTurn =
  | { readonly kind: "joined"; readonly step: StepRef; readonly prompt: string }
  /** No turn has such a pointer. */
  | { readonly kind: "unknown" }
  | { readonly kind: "ended" };

export interface EndedStep {
  readonly step: StepRef;
  readonly sequence: number;
  /** What was written and not appended yet. */
  readonly text: string;
  readonly waitMs: number;
}

export interface FinalStep {
  readonly step: StepRef;
  readonly outcome: Extract<TurnOutcome, "complete" | "cut" | "failed">;
  /** All that this step has written, whatever was appended before. */
  readonly text: string;
  readonly requestId: string;
  readonly traceparent: DeliveryJob["traceparent"];
}

export interface Turns {
  /** Records the injection with the outcome `ok`, and opens its turn with step 1. */
  open(turn: NewTurn): Promise<OpenedTurn>;
  /** All writes of this process in one call. One answer for each. */
  write(writes: readonly StepWrite[]): Promise<readonly ("alive" | "ended")[]>;
  hold(turn: HeldTurn): Promise<"held" | "ended">;
  join(question: { readonly pointer: string; readonly token: string }): Promise<JoinedTurn>;
  /** The step is over and the turn isn't. */
  endStep(ended: EndedStep): Promise<"waiting" | "ended">;
  /** Queues the acknowledgment if no other step is alive. `open`: another one is. */
  settle(final: FinalStep): Promise<"queued" | "ended" | "open">;
}

/** Turns of the model proxy: names, and what a step's end means. The states are drawn in docs/state-machine.md. */

/** The forms of calls that the proxy can put an ad into. */
export const DIALECTS = ["chat_completions", "messages", "responses"] as const;
export type DialectName = (typeof DIALECTS)[number];

/** How a step ended. */
export type StepEnd =
  /** Its last event was written, and it has no tool call of the client's. */
  | { readonly kind: "complete" }
  /** The caller must answer tool calls, or continue a paused step. */
  | { readonly kind: "continues" }
  /** The caller or the model's server was gone before the last event, or this process stopped. */
  | { readonly kind: "cut" }
  /** The model's server said that it failed, in a status or in an event. */
  | { readonly kind: "failed" };

/** How a turn ended, in metrics. `superseded`: it didn't end by itself, but was acknowledged by its backend, or erased. */
export const TURN_OUTCOMES = ["complete", "cut", "failed", "orphaned", "superseded", "manual"] as const;
export type TurnOutcome = (typeof TURN_OUTCOMES)[number];

/** What becomes of a turn without any text. A service may refuse an empty text. */
export const EMPTY_ANSWERS = ["acknowledge", "abandon"] as const;
export type EmptyAnswers = (typeof EMPTY_ANSWERS)[number];

/** Whether calls of a kind get ads. */
export const AD_CHOICES = ["skip", "allow"] as const;
export type AdChoice = (typeof AD_CHOICES)[number];

/** `none`: the journal has no such turn, because it was never opened or has ended. */
export const TURN_STATES = ["none", "running", "waiting"] as const;
type TurnState = (typeof TURN_STATES)[number];

export const TURN_EVENTS = [
  /** An ad was put into a prompt. */
  "open",
  /** A next step or a retry begins. */
  "join",
  /** A step that hasn't ended appends text, or renews its lease. */
  "write",
  /** A step is over, and more may come. */
  "end_step",
  /** A step is over, and the turn with it. */
  "final",
  /** A worker finds the turn in the sweep. */
  "due",
] as const;
export type TurnEvent = (typeof TURN_EVENTS)[number];

/** A turn as an event meets it. */
export type TurnView =
  | { readonly kind: "none" }
  /** At least one step has a lease. `otherLeases`: those of other steps than the event's own. */
  | { readonly kind: "running"; readonly otherLeases: number }
  /** No step has a lease. */
  | { readonly kind: "waiting"; readonly isOver: boolean };

/**
 * `ended`: the acknowledgment is queued, and the journal forgets the turn. `refused`: nothing changes.
 */
export type TurnTransition = Exclude<TurnState, "none"> | "ended" | "refused";

/**
 * What an event does to a turn. The scripts in packages/store/src/journal do it; packages/store/test/turns.test.ts compares
 * the two for every state and every event.
 */
export function decideTurn(turn: TurnView, event: TurnEvent): TurnTransition {
  switch (turn.kind) {
    case "none":
      return event === "open" ? "running" : "refused";
    case "running":
      return decideRunning(turn.otherLeases > 0, event);
    case "waiting":
      return decideWaiting(turn.isOver, event);
    default:
      return turn satisfies never;
  }
}

function decideRunning(isAnotherAlive: boolean, event: TurnEvent): TurnTransition {
  switch (event) {
    case "join":
    case "write":
      return "running";
    case "end_step":
      return isAnotherAlive ? "running" : "waiting";
    case "final":
      return isAnotherAlive ? "running" : "ended";
    case "open":
    case "due":
      return "refused";
    default:
      return event satisfies never;
  }
}

function decideWaiting(isOver: boolean, event: TurnEvent): TurnTransition {
  switch (event) {
    case "join":
    case "write":
      return "running";
    case "end_step":
      return "waiting";
    case "final":
      return "ended";
    case "due":
      return isOver ? "ended" : "refused";
    case "open":
      return "refused";
    default:
      return event satisfies never;
  }
}

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

/** How a turn ended, in metrics. */
export const TURN_OUTCOMES = ["complete", "cut", "failed", "orphaned", "superseded", "manual"] as const;
export type TurnOutcome = (typeof TURN_OUTCOMES)[number];

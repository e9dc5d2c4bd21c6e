/** What the readers of answers share: checks of values that came from a model's server, and the calls of a step. */
import type { StepEnd } from "@adrelay/core";
import type { EventReading } from "./dialect.ts";

const NO_IDS: readonly string[] = [];
/** More calls than a model makes in one step. Those beyond aren't kept, and can't be named by a next step. */
const CALLS_MAX = 256;

/** An event that says nothing of what is read here. */
export const NOTHING: EventReading = { text: "", callIds: NO_IDS };
export const FAILED: EventReading = { text: "", callIds: NO_IDS, end: { kind: "failed" } };

export function isRecord(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** The elements that are objects. None if the value isn't a list. */
export function recordsOf(value: unknown): Readonly<Record<string, unknown>>[] {
  return Array.isArray(value) ? value.filter(isRecord) : [];
}

/** A string, or the empty one for anything else. */
export function textOf(value: unknown): string {
  return typeof value === "string" ? value : "";
}

/** A value that says that something went wrong: any but `null`, `undefined`, `false` and the empty string. */
export function isError(value: unknown): boolean {
  return Boolean(value);
}

export function readingOf(text: string, callIds: readonly string[] = NO_IDS, end?: StepEnd): EventReading {
  if (end !== undefined) return { text, callIds, end };
  return text === "" && callIds.length === 0 ? NOTHING : { text, callIds };
}

/** The calls of the client's tools in one step, each of them once. */
export class StepCalls {
  readonly #calls = new Map<string, "open" | "answered">();

  /** The ids that are new. What isn't a usable id is left out. */
  add(...ids: readonly unknown[]): readonly string[] {
    const added: string[] = [];
    for (const id of ids) {
      if (typeof id !== "string" || id === "" || this.#calls.has(id)) continue;
      if (this.#calls.size >= CALLS_MAX) break;
      this.#calls.set(id, "open");
      added.push(id);
    }
    return added.length === 0 ? NO_IDS : added;
  }

  /** The server itself has answered this call in the same step. */
  markAnswered(id: unknown): void {
    if (typeof id === "string" && this.#calls.has(id)) this.#calls.set(id, "answered");
  }

  /** How a step ends that its model's server has ended: it continues if a later call can name one of its calls. */
  end(): StepEnd {
    for (const state of this.#calls.values()) if (state === "open") return { kind: "continues" };
    return { kind: "complete" };
  }
}

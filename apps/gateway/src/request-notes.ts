import type { Response } from "express";

/** What the handlers add to the one log line of their request. Never a text of a user's (invariant 6). */
export interface RequestNotes {
  readonly operation?: string;
  readonly publisher?: string;
  readonly ad_response_id?: string;
  readonly outcome?: string;
}

const notes = new WeakMap<Response, RequestNotes>();

export function annotate(response: Response, added: RequestNotes): void {
  notes.set(response, { ...notes.get(response), ...added });
}

export function notesOf(response: Response): RequestNotes {
  return notes.get(response) ?? {};
}

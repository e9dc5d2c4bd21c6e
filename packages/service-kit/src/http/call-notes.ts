import type { Response } from "express";

/** Fields of a request's one log line. Nothing that a user wrote belongs here (invariant 6). */
export type Notes = Readonly<Record<string, string | number>>;

/** What the handling of a request has to say in its one log line. */
export class CallNotes {
  readonly #notes = new WeakMap<Response, Notes>();

  add(response: Response, fields: Notes): void {
    this.#notes.set(response, { ...this.#notes.get(response), ...fields });
  }

  of(response: Response): Notes {
    return this.#notes.get(response) ?? {};
  }
}

import type { Response } from "express";

/** The answers that are under way. A stop cuts them: nobody waits for the rest of a canned text. */
export class OpenAnswers {
  readonly #open = new Set<Response>();
  #isCut = false;

  add(response: Response): void {
    if (this.#isCut) {
      response.destroy();
      return;
    }
    this.#open.add(response);
    response.once("close", () => this.#open.delete(response));
  }

  /** Cuts all of them, and those that still come. */
  cutAll(): void {
    this.#isCut = true;
    for (const response of this.#open) {
      response.destroy();
    }
  }
}

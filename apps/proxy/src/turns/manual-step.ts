/**
 * The step of a call whose backend acknowledges by itself. A backend that got no text of the model's has nothing to acknowledge,
 * so the proxy does it: with an empty text, if the model has refused the ad or hasn't answered with a status below 300.
 */
import type { StepEnd } from "@adrelay/core";
import type { StepSink } from "../http/call.ts";

const STATUS_OK_MAX = 299;

export class ManualStep implements StepSink {
  readonly readsAnswer = false;
  readonly #acknowledgeEmpty: () => void;
  #isOver = false;

  constructor(acknowledgeEmpty: () => void) {
    this.#acknowledgeEmpty = acknowledgeEmpty;
  }

  refused(): void {
    this.ended({ kind: "failed" }, undefined);
  }

  written(): void {}

  sawCalls(): void {}

  ended(_end: StepEnd, status: number | undefined): void {
    if (!this.#isOver && (status === undefined || status > STATUS_OK_MAX)) {
      this.#acknowledgeEmpty();
    }
    this.#isOver = true;
  }
}

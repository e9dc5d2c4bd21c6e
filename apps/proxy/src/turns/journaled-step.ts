/**
 * One step of a turn, as the journal holds it from its first byte until Redis has confirmed its end.
 *
 * 1. Text is appended in writes with rising sequences. A write of unknown fate is sent again as it was, before a newer one.
 * 2. Holds and the end run one after the other, in the order in which they were asked for.
 * 3. Once Redis says that the turn is over, nothing is written any more but the end itself. If Redis has lost the turn,
 *    that end is taken as an acknowledgment of an unknown id.
 */
import {
  type EndedStep,
  type FinalStep,
  type StepRef,
  type StepWrite,
  TURN_LEASE_MS,
  type Turns,
} from "@adrelay/store";
import type { JournalRoom } from "./journal-room.ts";
import type { TurnMetrics } from "./turn-metrics.ts";
import { TurnText } from "./turn-text.ts";

type StepOutcome = FinalStep["outcome"];

/** A turn that is over sooner than this after its step's begin is never appended to. */
export const APPEND_INTERVAL_MS = 250;
/** How long after the latest write a lease is renewed. */
const RENEW_AFTER_MS = 5000;

/** What a step needs of the journal. */
export interface StepHost {
  readonly turns: Turns;
  readonly room: JournalRoom;
  readonly metrics: TurnMetrics;
  readonly textLimitBytes: number;
  /** Calls until Redis confirms; undefined if the journal gives up. `failed`: how many calls failed before. */
  persist<T>(call: () => Promise<T>): Promise<{ readonly value: T; readonly failed: number } | undefined>;
  /** The step has so much text that it should be appended soon. */
  onMuchText(): void;
  /** The step needs no more appending and renewing. */
  leave(step: JournaledStep): void;
  /** Keeps the journal's stop waiting. */
  track(work: Promise<void>): void;
}

/** A step that an ad was put into. */
export interface NewStep {
  readonly ref: StepRef;
  readonly prompt: string;
  readonly requestId: string;
  readonly traceparent: FinalStep["traceparent"];
}

/** This much text is appended without waiting for the interval. */
const MUCH_TEXT_CHARS = 4096;

export class JournaledStep {
  readonly #step: NewStep;
  readonly #host: StepHost;
  readonly #text: TurnText;
  readonly #startedAtMs = performance.now();
  #leaseAtMs = this.#startedAtMs;
  /** The latest confirmed write, and how much of the text it and those before it had. */
  #confirmed = { sequence: 0, chars: 0 };
  #unconfirmed: { readonly sequence: number; readonly text: string } | undefined;
  /** Redis says that the turn is over. */
  #isTurnOver = false;
  /** Nothing is appended any more. */
  #hasLeft = false;
  #hasLost = false;
  #work: Promise<void> = Promise.resolve();

  constructor(step: NewStep, host: StepHost) {
    this.#step = step;
    this.#host = host;
    this.#text = new TurnText(host.textLimitBytes);
    host.room.take(Buffer.byteLength(step.prompt));
  }

  /** Keeps text that was written to the caller. */
  add(text: string): void {
    const { room, metrics } = this.#host;
    if (this.#text.isTruncated) {
      return;
    }
    if (room.isFull) {
      this.#text.truncate();
      this.#countLost();
      return;
    }
    room.take(this.#text.add(text));
    if (this.#text.isTruncated) {
      metrics.truncated.inc();
    }
    if (this.#hasMuchText() && this.#mayAppend(performance.now())) {
      this.#host.onMuchText();
    }
  }

  /** What is to be written now; undefined if nothing is. */
  nextWrite(nowMs: number): StepWrite | undefined {
    if (this.#hasLeft) {
      return undefined;
    }
    const { ref } = this.#step;
    const { sequence } = this.#confirmed;
    const text = this.#unappended();
    if (this.#unconfirmed === undefined && text !== "" && this.#mayAppend(nowMs)) {
      this.#unconfirmed = { sequence: sequence + 1, text };
    }
    if (this.#unconfirmed !== undefined) {
      return { step: ref, ...this.#unconfirmed };
    }
    return nowMs - this.#leaseAtMs >= RENEW_AFTER_MS ? { step: ref, sequence, text: undefined } : undefined;
  }

  /** To be told what Redis answered to a write that was sent at `sentAtMs`. */
  onWritten(write: StepWrite, answer: "alive" | "ended", sentAtMs: number): void {
    if (answer === "ended") {
      this.#endTurn();
      return;
    }
    this.#leaseAtMs = sentAtMs;
    if (write.text !== undefined && write.sequence === this.#unconfirmed?.sequence) {
      const chars = this.#confirmed.chars + write.text.length;
      this.#confirmed = { sequence: write.sequence, chars };
      this.#unconfirmed = undefined;
    }
  }

  /** Lets a later call find the turn by these pointers. */
  hold(pointers: readonly string[], waitMs: number): void {
    this.#enqueue(async () => {
      const { ref: step, prompt } = this.#step;
      if (!this.#isTurnOver) {
        const held = await this.#host.persist(() =>
          this.#host.turns.hold({ step, prompt, pointers, waitMs }),
        );
        if (held?.value === "ended") {
          this.#endTurn();
        }
      }
    });
  }

  /** The step is over, and the turn waits for another one. `outcome`: what the turn counts as if none comes. */
  endStep(wait: Pick<EndedStep, "waitMs" | "outcome">): void {
    this.#leave();
    this.#enqueue(async () => {
      if ((await this.#confirmWrite()) && (await this.#storeEnd(wait))) {
        this.#release();
      } else {
        await this.#settle(wait.outcome);
      }
    });
  }

  /** The turn's final end. */
  settle(outcome: StepOutcome): void {
    this.#leave();
    this.#enqueue(() => this.#settle(outcome));
  }

  /** A write of unknown fate comes before the end of the step. False if the turn is over. */
  async #confirmWrite(): Promise<boolean> {
    const write =
      this.#unconfirmed === undefined ? undefined : { step: this.#step.ref, ...this.#unconfirmed };
    if (write !== undefined && !this.#isTurnOver) {
      const sentAtMs = performance.now();
      const written = await this.#host.persist(() => this.#host.turns.write([write]));
      const [answer] = written?.value ?? [];
      if (answer !== undefined) {
        this.onWritten(write, answer, sentAtMs);
      }
    }
    return !this.#isTurnOver;
  }

  /** False if the turn is over. */
  async #storeEnd({ waitMs, outcome }: Pick<EndedStep, "waitMs" | "outcome">): Promise<boolean> {
    const sequence = this.#confirmed.sequence + 1;
    const text = this.#text.text.slice(this.#confirmed.chars);
    const ended = { step: this.#step.ref, sequence, text, waitMs, outcome };
    const stored = await this.#host.persist(() => this.#host.turns.endStep(ended));
    if (stored === undefined) {
      this.#giveUp();
    }
    return stored?.value !== "ended";
  }

  async #settle(outcome: StepOutcome): Promise<void> {
    const { ref: step, requestId, traceparent } = this.#step;
    const final = { step, outcome, text: this.#text.text, requestId, traceparent };
    const settled = await this.#host.persist(() => this.#host.turns.settle(final));
    if (settled === undefined) {
      this.#giveUp();
    } else if (settled.value === "ended" && settled.failed === 0 && this.#isLate()) {
      this.#host.metrics.lateText.inc();
    }
    this.#release();
  }

  /** Whether text was written after the turn had ended. A turn that ended at its proper end has none. */
  #isLate(): boolean {
    const hasLeaseEnded = performance.now() - this.#leaseAtMs > TURN_LEASE_MS;
    return (this.#isTurnOver || hasLeaseEnded) && this.#text.text.length > this.#confirmed.chars;
  }

  /** What may be appended now. A pair of surrogates stays together: each write is encoded by itself. */
  #unappended(): string {
    const text = this.#text.text.slice(this.#confirmed.chars);
    return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
  }

  #hasMuchText(): boolean {
    const chars = this.#text.text.length - this.#confirmed.chars;
    return this.#unconfirmed === undefined && !this.#hasLeft && chars >= MUCH_TEXT_CHARS;
  }

  #mayAppend(nowMs: number): boolean {
    return nowMs - this.#startedAtMs >= APPEND_INTERVAL_MS;
  }

  #leave(): void {
    this.#hasLeft = true;
    this.#host.leave(this);
  }

  #endTurn(): void {
    this.#isTurnOver = true;
    this.#leave();
  }

  #giveUp(): void {
    if (this.#text.text.length > this.#confirmed.chars) {
      this.#countLost();
    }
  }

  #countLost(): void {
    if (!this.#hasLost) {
      this.#hasLost = true;
      this.#host.metrics.lostText.inc();
    }
  }

  #release(): void {
    this.#host.room.giveBack(this.#text.bytes + Buffer.byteLength(this.#step.prompt));
    this.#text.clear();
  }

  #enqueue(work: () => Promise<void>): void {
    this.#work = this.#work.then(work);
    this.#host.track(this.#work);
  }
}

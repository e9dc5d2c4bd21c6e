/**
 * One step of a turn, as the journal holds it from its begin until Redis has confirmed its end.
 *
 * 1. The end waits for all holds, and a write of unknown fate is sent again before it. No hold is asked for after the end.
 * 2. A hold is on its way to Redis before the call for it returns, also while earlier ones aren't confirmed: the caller may answer
 *    a tool call as soon as it has it, by way of another proxy. Only one of them has the prompt, which may be long; if it
 *    fails, the next that is sent has it.
 * 3. Once Redis says that the turn is over, only the end is sent. If Redis has lost the turn, that end is taken as an
 *    acknowledgment of an unknown id.
 * 4. The ad is looked for once in the text of a turn's only step, however often its end is sent.
 */
import type { AdResponseId } from "@adrelay/contract";
import type { Finding, TurnAd } from "@adrelay/core";
import {
  type EndedStep,
  type FinalStep,
  type FindAd,
  type HeldKind,
  type HeldTurn,
  type StepRef,
  type StepWrite,
  TURN_LEASE_MS,
  type Turns,
  type WriteAnswer,
} from "@adrelay/store";
import type { JournalRoom } from "./journal-room.ts";
import { StepText } from "./step-text.ts";
import type { TextGate } from "./text-gate.ts";
import type { TurnMetrics } from "./turn-metrics.ts";

/** A turn that is over sooner than this after its step's begin is never appended to. */
export const APPEND_INTERVAL_MS = 250;
/** How long after the latest write a lease is renewed. */
const RENEW_AFTER_MS = 5000;
/** This much text is appended without waiting for the interval. */
const MUCH_TEXT_BYTES = 4096;

type StepWait = Pick<EndedStep, "waitMs" | "outcome">;
type TurnWait = Pick<HeldTurn, "pointers" | "waitMs" | "awaits">;

/** What a step needs of the journal. */
export interface StepHost {
  readonly turns: Turns;
  readonly findAd: FindAd;
  readonly room: JournalRoom;
  readonly metrics: Pick<TurnMetrics, "truncated" | "lateText" | "droppedPrompts">;
  readonly textLimitBytes: number;
  /** Bounds the texts that are on their way at the same time. */
  readonly gate: TextGate;
  /**
   * Calls until Redis confirms; undefined if the journal gives up. `failed`: how many calls failed before. Each call makes its text anew,
   * so that none waits for Redis as a string.
   */
  persist<T>(call: () => Promise<T>): Promise<{ readonly value: T; readonly failed: number } | undefined>;
  /** Text that was written won't be acknowledged. */
  onLost(id: AdResponseId): void;
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
  /** For a next step or a retry; undefined if Redis has it. */
  readonly prompt: string | undefined;
  /** Of a turn's first step; undefined for others, and if nothing is known of the ad. */
  readonly ad: TurnAd | undefined;
  readonly requestId: string;
  readonly traceparent: FinalStep["traceparent"];
}

export class JournaledStep {
  readonly #step: Omit<NewStep, "prompt">;
  readonly #host: StepHost;
  readonly #text: StepText;
  /** Until Redis has it, or the step is over. A buffer has as many bytes as are counted; a string may have twice. */
  #prompt: Buffer | undefined;
  #holds = 0;
  /** How many holds with the prompt are on their way. */
  #promptsSent = 0;
  readonly #startedAtMs = performance.now();
  #leaseAtMs = this.#startedAtMs;
  /** Nothing is appended any more. */
  #hasLeft = false;
  /** Redis says so. */
  #isTurnOver = false;
  #hasLost = false;
  #work: Promise<void> = Promise.resolve();
  /** How much of it isn't done. */
  #worksLeft = 0;

  constructor({ prompt, ...step }: NewStep, host: StepHost) {
    this.#step = step;
    this.#host = host;
    this.#text = new StepText(host.textLimitBytes);
    this.#prompt = prompt === undefined ? undefined : Buffer.from(prompt);
    host.room.take(this.#prompt?.length ?? 0);
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
    const { ref: step } = this.#step;
    const write = this.#mayAppend(nowMs) ? this.#text.planWrite() : undefined;
    if (write !== undefined) {
      return { step, ...write };
    }
    const isDue = nowMs - this.#leaseAtMs >= RENEW_AFTER_MS;
    return isDue ? { step, sequence: this.#text.sequence, text: undefined } : undefined;
  }

  /** To be told what Redis answered to a write that was sent at `sentAtMs`. */
  onWritten(write: StepWrite, answer: Exclude<WriteAnswer, Error>, sentAtMs: number): void {
    if (answer === "ended") {
      this.#endTurn();
      return;
    }
    this.#leaseAtMs = sentAtMs;
    if (answer === "behind") {
      this.#text.fallBehind();
    } else if (write.text !== undefined) {
      this.#text.confirm(write);
    }
  }

  /** Lets a later call find the turn by these pointers. */
  hold(wait: TurnWait): void {
    if (!this.#isTurnOver) {
      this.#workOn(this.#hold(wait));
    }
  }

  async #hold(wait: TurnWait): Promise<void> {
    this.#holds += 1;
    const hold = { step: this.#step.ref, number: this.#holds, ...wait };
    const held = await this.#host.persist(() => this.#sendHold(hold));
    if (held?.value === "ended") {
      this.#endTurn();
    }
  }

  async #sendHold(hold: Omit<HeldTurn, "prompt">): Promise<HeldKind> {
    const hasPrompt = this.#prompt !== undefined && this.#promptsSent === 0;
    const prompt = hasPrompt ? String(this.#prompt) : "";
    this.#promptsSent += Number(hasPrompt);
    try {
      const answer = await this.#host.turns.hold({ ...hold, prompt });
      if (answer !== "ended" && hasPrompt) {
        this.#forgetPrompt();
      }
      if (answer === "bare") {
        this.#host.metrics.droppedPrompts.inc();
      }
      return answer;
    } finally {
      this.#promptsSent -= Number(hasPrompt);
    }
  }

  #forgetPrompt(): void {
    this.#host.room.giveBack(this.#prompt?.length ?? 0);
    this.#prompt = undefined;
  }

  /** The step is over, and the turn waits for another one. `outcome`: what the turn counts as if none comes. */
  endStep(wait: StepWait): void {
    this.#leave();
    this.#enqueue(async () => {
      await this.#confirmWrite();
      if (this.#isTurnOver || (await this.#storeEnd(wait)) === "ended") {
        await this.#settle(wait.outcome);
      } else {
        this.#release();
      }
    });
  }

  /** The turn's final end. */
  settle(outcome: FinalStep["outcome"]): void {
    this.#enqueue(async () => {
      // Its text is appended meanwhile, so a crash costs no more of it than at any other moment.
      const finding = await this.#find();
      this.#leave();
      await this.#settle(outcome, finding);
    });
  }

  /** The store looks into the text of a turn of several steps, which isn't here. */
  async #find(): Promise<Finding | undefined> {
    const { ref, ad } = this.#step;
    return ref.step === 1 && !this.#isTurnOver ? this.#host.findAd(this.#text.whole, ad) : undefined;
  }

  async #confirmWrite(): Promise<void> {
    const { unconfirmed } = this.#text;
    if (unconfirmed !== undefined && !this.#isTurnOver) {
      const write = { step: this.#step.ref, ...unconfirmed };
      const sentAtMs = performance.now();
      const written = await this.#host.persist(() => this.#writeAlone(write));
      if (written !== undefined) {
        this.onWritten(write, written.value, sentAtMs);
      }
    }
  }

  async #writeAlone(write: StepWrite): Promise<Exclude<WriteAnswer, Error>> {
    const [answer = "alive"] = await this.#host.turns.write([write]);
    if (answer instanceof Error) {
      throw answer;
    }
    return answer;
  }

  async #storeEnd(wait: StepWait): Promise<"waiting" | "ended"> {
    const stored = await this.#sendEnd(wait);
    if (stored === "behind") {
      this.#text.fallBehind();
      return this.#storeEnd(wait);
    }
    if (stored === undefined) {
      this.#giveUp();
    }
    return stored ?? "waiting";
  }

  async #sendEnd({ waitMs, outcome }: StepWait) {
    const { ref: step } = this.#step;
    const { persist, gate, turns } = this.#host;
    const stored = await persist(() =>
      gate.run(this.#text.unconfirmedBytes, () =>
        turns.endStep({ step, ...this.#text.lastWrite(), waitMs, outcome }),
      ),
    );
    return stored?.value;
  }

  async #settle(outcome: FinalStep["outcome"], finding?: Finding): Promise<void> {
    const { ref: step, requestId, traceparent } = this.#step;
    const { persist, gate, turns } = this.#host;
    const settled = await persist(() =>
      gate.run(this.#text.bytes, () =>
        turns.settle({ step, outcome, text: this.#text.whole, finding, requestId, traceparent }),
      ),
    );
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
    return (this.#isTurnOver || hasLeaseEnded) && this.#text.unconfirmedBytes > 0;
  }

  #hasMuchText(): boolean {
    const { unconfirmed, unconfirmedBytes, isBehind } = this.#text;
    return unconfirmed === undefined && !isBehind && !this.#hasLeft && unconfirmedBytes >= MUCH_TEXT_BYTES;
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
    if (this.#text.unconfirmedBytes > 0) {
      this.#countLost();
    }
  }

  #countLost(): void {
    if (!this.#hasLost) {
      this.#hasLost = true;
      this.#host.onLost(this.#step.ref.id);
    }
  }

  #release(): void {
    this.#forgetPrompt();
    this.#host.room.giveBack(this.#text.bytes);
    this.#text.clear();
  }

  #enqueue(work: () => Promise<void>): void {
    this.#workOn(this.#worksLeft === 0 ? work() : this.#work.then(work));
  }

  #workOn(begun: Promise<void>): void {
    this.#worksLeft += 1;
    const done = begun.finally(() => {
      this.#worksLeft -= 1;
    });
    // The journal logs a failure, which is a bug; the end must come through nevertheless.
    this.#work = Promise.allSettled([this.#work, done]).then(() => {});
    this.#host.track(done);
  }
}

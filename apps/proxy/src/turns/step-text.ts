/**
 * The text of one step, and how much of it is in the journal. Pure; nothing is sent here.
 *
 * 1. Text is appended in writes with rising sequences, from 1 on.
 * 2. A write whose fate is unknown stays the next write, unchanged, until it is confirmed.
 * 3. If Redis has lost confirmed writes, no more are planned, and the last write is the whole text.
 */
import { TurnText } from "./turn-text.ts";

/** A piece of the text, and its place. */
export interface TextWrite {
  readonly sequence: number;
  readonly text: string;
}

/** `=`: all of the text, in place of what was written. */
export type LastWrite = Omit<TextWrite, "sequence"> & { readonly sequence: number | "=" };

export class StepText {
  readonly #text: TurnText;
  /** The latest confirmed write, and where it ends in the text. */
  #confirmed = { sequence: 0, endByte: 0 };
  #unconfirmed: TextWrite | undefined;
  #unconfirmedEndByte = 0;
  #isBehind = false;

  constructor(limitBytes: number) {
    this.#text = new TurnText(limitBytes);
  }

  /** All of it, whatever is in the journal. */
  get whole(): string {
    return this.#text.read();
  }

  get bytes(): number {
    return this.#text.bytes;
  }

  get isTruncated(): boolean {
    return this.#text.isTruncated;
  }

  /** The sequence of the latest confirmed write. */
  get sequence(): number {
    return this.#confirmed.sequence;
  }

  /** The write that was planned and isn't confirmed. */
  get unconfirmed(): TextWrite | undefined {
    return this.#unconfirmed;
  }

  /** How much isn't known to be in the journal. */
  get unconfirmedBytes(): number {
    return this.#text.bytes - this.#confirmed.endByte;
  }

  /** Whether Redis has lost writes that it had confirmed. */
  get isBehind(): boolean {
    return this.#isBehind;
  }

  /** To be called if Redis has lost writes that it had confirmed. */
  fallBehind(): void {
    this.#isBehind = true;
    this.#confirmed = { ...this.#confirmed, endByte: 0 };
    this.#unconfirmed = undefined;
  }

  /** Keeps what fits. Returns how many bytes were kept. */
  add(text: string): number {
    return this.#text.add(text);
  }

  /** Keeps no more. */
  truncate(): void {
    this.#text.truncate();
  }

  /** Forgets the text. */
  clear(): void {
    this.#text.clear();
    this.#confirmed = { ...this.#confirmed, endByte: 0 };
    this.#unconfirmed = undefined;
  }

  /** The next write: the unconfirmed one, or one of all that is new. Undefined if nothing is. */
  planWrite(): TextWrite | undefined {
    if (this.#unconfirmed === undefined && this.unconfirmedBytes > 0 && !this.#isBehind) {
      this.#unconfirmed = this.#newWrite();
      this.#unconfirmedEndByte = this.#text.bytes;
    }
    return this.#unconfirmed;
  }

  confirm({ sequence }: Pick<TextWrite, "sequence">): void {
    if (this.#unconfirmed?.sequence === sequence) {
      this.#confirmed = { sequence, endByte: this.#unconfirmedEndByte };
      this.#unconfirmed = undefined;
    }
  }

  /** The last write, of all that isn't confirmed. There must be no unconfirmed one. */
  lastWrite(): LastWrite {
    return this.#isBehind ? { sequence: "=", text: this.whole } : this.#newWrite();
  }

  #newWrite(): TextWrite {
    return { sequence: this.sequence + 1, text: this.#text.read(this.#confirmed.endByte) };
  }
}

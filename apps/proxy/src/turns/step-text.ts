/**
 * The text of one step, and how much of it is in the journal. Pure; nothing is sent here.
 *
 * 1. Text is appended in writes with rising sequences, from 1 on.
 * 2. A write whose fate is unknown stays the next write, unchanged, until it is confirmed.
 */
import { TurnText } from "./turn-text.ts";

/** A piece of the text, and its place. */
export interface TextWrite {
  readonly sequence: number;
  readonly text: string;
}

export class StepText {
  readonly #text: TurnText;
  /** The latest confirmed write, and how much of the text it and those before it had. */
  #confirmed = { sequence: 0, chars: 0 };
  #unconfirmed: TextWrite | undefined;

  constructor(limitBytes: number) {
    this.#text = new TurnText(limitBytes);
  }

  /** All of it, whatever is in the journal. */
  get whole(): string {
    return this.#text.text;
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
  get unconfirmedChars(): number {
    return this.whole.length - this.#confirmed.chars;
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
    this.#confirmed = { ...this.#confirmed, chars: 0 };
    this.#unconfirmed = undefined;
  }

  /** The next write: the unconfirmed one, or one of all that is new. Undefined if nothing is. */
  planWrite(): TextWrite | undefined {
    const text = this.#unconfirmed === undefined ? this.#wholeCharacters() : "";
    if (text !== "") {
      this.#unconfirmed = { sequence: this.sequence + 1, text };
    }
    return this.#unconfirmed;
  }

  confirm({ sequence }: Pick<TextWrite, "sequence">): void {
    if (this.#unconfirmed?.sequence === sequence) {
      const chars = this.#confirmed.chars + this.#unconfirmed.text.length;
      this.#confirmed = { sequence, chars };
      this.#unconfirmed = undefined;
    }
  }

  /** The last write, of all that isn't confirmed. There must be no unconfirmed one. */
  lastWrite(): TextWrite {
    return { sequence: this.sequence + 1, text: this.whole.slice(this.#confirmed.chars) };
  }

  /** A pair of surrogates in two events stays together: each write is encoded by itself. */
  #wholeCharacters(): string {
    const text = this.whole.slice(this.#confirmed.chars);
    return /[\ud800-\udbff]$/.test(text) ? text.slice(0, -1) : text;
  }
}

/** The text of one step: what was written to the caller, within the limit of its turn. */

const encoder = new TextEncoder();

export class TurnText {
  readonly #limitBytes: number;
  #text = "";
  #bytes = 0;
  #isTruncated = false;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get text(): string {
    return this.#text;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether something was over the limit. Nothing is kept after that, so the text has no gap. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** Keeps what fits, cut at a character. Returns how many bytes were kept. */
  add(text: string): number {
    if (this.#isTruncated) {
      return 0;
    }
    const bytes = Buffer.byteLength(text);
    const leftBytes = this.#limitBytes - this.#bytes;
    if (bytes <= leftBytes) {
      this.#text += text;
      this.#bytes += bytes;
      return bytes;
    }
    this.#isTruncated = true;
    const { read, written } = encoder.encodeInto(text, new Uint8Array(Math.max(0, leftBytes)));
    this.#text += text.slice(0, read);
    this.#bytes += written;
    return written;
  }

  /** Keeps no more. */
  truncate(): void {
    this.#isTruncated = true;
  }

  /** Forgets what was kept. */
  clear(): void {
    this.#isTruncated = true;
    this.#text = "";
    this.#bytes = 0;
  }
}

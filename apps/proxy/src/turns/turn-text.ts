/**
 * The text of one step: what was written to the caller, within the limit of its turn. It is kept as UTF-8 outside of V8's heap, which
 * is the smaller part of a process' memory. As a string it would also take twice as much if one character is beyond Latin-1.
 */

const encoder = new TextEncoder();
const BUFFER_BYTES_MIN = 256;
const HIGH_SURROGATE_AT_END = /[\ud800-\udbff]$/;

export class TurnText {
  readonly #limitBytes: number;
  /** Doubles as the text grows. */
  #buffer: Buffer<ArrayBuffer> = Buffer.from(new ArrayBuffer(0));
  #bytes = 0;
  /** The first half of a character, whose second half comes with the next text. */
  #half = "";
  #isTruncated = false;

  constructor(limitBytes: number) {
    this.#limitBytes = limitBytes;
  }

  get bytes(): number {
    return this.#bytes;
  }

  /** Whether something was over the limit. Nothing is kept after that, so the text has no gap. */
  get isTruncated(): boolean {
    return this.#isTruncated;
  }

  /** The text from a byte on at which a character begins. */
  read(fromByte = 0): string {
    return this.#buffer.toString("utf8", fromByte, this.#bytes);
  }

  /** Keeps what fits, cut at a character. Returns how many bytes were kept. */
  add(text: string): number {
    if (this.#isTruncated) {
      return 0;
    }
    const whole = this.#withoutHalf(this.#half + text);
    const bytes = Buffer.byteLength(whole);
    this.#isTruncated = this.#bytes + bytes > this.#limitBytes;
    const endByte = this.#isTruncated ? this.#limitBytes : this.#bytes + bytes;
    this.#reserve(endByte);
    const { written } = encoder.encodeInto(whole, this.#buffer.subarray(this.#bytes, endByte));
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
    this.#buffer = Buffer.from(new ArrayBuffer(0));
    this.#bytes = 0;
  }

  #withoutHalf(text: string): string {
    this.#half = HIGH_SURROGATE_AT_END.test(text) ? text.slice(-1) : "";
    return this.#half === "" ? text : text.slice(0, -1);
  }

  /** The memory of the old buffer is free at once, without a garbage collection. */
  #reserve(bytes: number): void {
    if (bytes > this.#buffer.length) {
      const length = Math.min(this.#limitBytes, Math.max(BUFFER_BYTES_MIN, 2 * bytes));
      this.#buffer = Buffer.from(this.#buffer.buffer.transfer(length));
    }
  }
}

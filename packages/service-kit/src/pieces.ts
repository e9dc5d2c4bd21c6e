/**
 * A body that arrives in pieces. It holds not much more memory than what has arrived of it, however small the pieces are: they
 * are copied into one buffer that doubles.
 */

/** The smallest buffer for a body of several pieces. */
const BUFFER_BYTES_MIN = 1024;

/** Puts the pieces of a body together. A body of one piece is never copied. */
export class Pieces {
  readonly #hold: (bytes: number) => boolean;
  readonly #bytesMax: number;
  #only: Buffer | undefined;
  #buffer: Buffer<ArrayBuffer> | undefined;
  #length = 0;

  /** @param hold asked for each number of bytes before they are held; false: they aren't */
  constructor(hold: (bytes: number) => boolean, bytesMax: number) {
    this.#hold = hold;
    this.#bytesMax = bytesMax;
  }

  /** Adds a piece; undefined if that went well. A piece that is refused isn't kept. */
  add(piece: Buffer): "too_large" | "not_held" | undefined {
    const length = this.#length + piece.length;
    if (length > this.#bytesMax) {
      return "too_large";
    }
    const refusal = this.#length === 0 ? this.#keep(piece) : this.#copy(piece, length);
    if (refusal === undefined) {
      this.#length = length;
    }
    return refusal;
  }

  /** All that was added. It is no longer held here. */
  take(): Buffer {
    const body = this.#only ?? this.#buffer?.subarray(0, this.#length) ?? Buffer.alloc(0);
    this.#only = undefined;
    this.#buffer = undefined;
    return body;
  }

  #keep(piece: Buffer): "not_held" | undefined {
    if (!this.#hold(piece.length)) {
      return "not_held";
    }
    this.#only = piece;
    return undefined;
  }

  #copy(piece: Buffer, length: number): "not_held" | undefined {
    const heldBytes = this.#buffer?.length ?? this.#length;
    if (length > heldBytes || this.#buffer === undefined) {
      const bytes = Math.min(this.#bytesMax, Math.max(BUFFER_BYTES_MIN, 2 * length));
      if (!this.#hold(bytes - heldBytes)) {
        return "not_held";
      }
      this.#grow(bytes);
    }
    this.#buffer?.set(piece, this.#length);
    return undefined;
  }

  /** Moves what there is into a longer buffer. The memory of the old one is free at once, without a garbage collection. */
  #grow(bytes: number): void {
    if (this.#buffer === undefined) {
      this.#buffer = Buffer.from(new ArrayBuffer(bytes));
      this.#buffer.set(this.#only ?? [], 0);
      this.#only = undefined;
    } else {
      this.#buffer = Buffer.from(this.#buffer.buffer.transfer(bytes));
    }
  }
}

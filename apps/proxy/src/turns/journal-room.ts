/** How many bytes of texts and prompts the journal of this process holds, and may hold. */
export class JournalRoom {
  readonly #maxBytes: number;
  #usedBytes = 0;

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  get usedBytes(): number {
    return this.#usedBytes;
  }

  get isFull(): boolean {
    return this.#usedBytes >= this.#maxBytes;
  }

  /** Counts bytes that are in memory now. What is taken while the room isn't full may exceed it once. */
  take(bytes: number): void {
    this.#usedBytes += bytes;
  }

  giveBack(bytes: number): void {
    this.#usedBytes -= bytes;
  }
}

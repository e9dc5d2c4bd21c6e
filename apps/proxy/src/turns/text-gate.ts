/**
 * Bounds how much text is on its way to Redis at the same time. There a text is in V8's heap several times: as itself, as JSON, and as
 * a part of a call. If thousands of answers are cut at once, the others wait as bytes. They go in their order; a text that is longer
 * than the bound goes alone.
 */
export class TextGate {
  readonly #maxBytes: number;
  #bytes = 0;
  readonly #waiting: { readonly bytes: number; start(): void }[] = [];

  constructor(maxBytes: number) {
    this.#maxBytes = maxBytes;
  }

  /** Does the work once there is room for its text: at once, if there is. */
  run<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    if (this.#waiting.length === 0 && this.#take(bytes)) {
      return this.#pass(bytes, work);
    }
    const { promise, resolve } = Promise.withResolvers<void>();
    this.#waiting.push({ bytes, start: resolve });
    return promise.then(() => this.#pass(bytes, work));
  }

  #take(bytes: number): boolean {
    const fits = this.#bytes === 0 || this.#bytes + bytes <= this.#maxBytes;
    this.#bytes += fits ? bytes : 0;
    return fits;
  }

  async #pass<T>(bytes: number, work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } finally {
      this.#bytes -= bytes;
      this.#startNext();
    }
  }

  #startNext(): void {
    for (let first = this.#waiting[0]; first && this.#take(first.bytes); first = this.#waiting[0]) {
      this.#waiting.shift();
      first.start();
    }
  }
}

/** Collects the text that a consumer was given, and acknowledges it once: at the end, an abort, or after a long silence. */
import type { RelayEvent } from "./events.ts";
import { type Injected, TEXT_CHARS_MAX } from "./injection.ts";
import { onAbort, startTimer, withResolver } from "./limits.ts";

/** The text of a chunk; undefined or null if it has none, such as a chunk with a tool call. */
export type TextOf<Chunk> = (chunk: Chunk) => string | null | undefined;

export interface ShownTextOptions<Chunk> {
  readonly injected: Injected;
  readonly textOf: TextOf<Chunk>;
  readonly signal: AbortSignal | undefined;
  /** After so long without a chunk, the consumer counts as gone. */
  readonly idleMs: number;
  readonly report: (event: RelayEvent) => void;
}

export class ShownText<Chunk> {
  readonly #options: ShownTextOptions<Chunk>;
  #text = "";
  #isSettled = false;
  /** Whether the consumer waits for the model. */
  isAsked = false;
  #lastAtMs = performance.now();
  #stopTimer = () => {};
  #stopListening = () => {};
  readonly #settled = withResolver<void>();
  /** Resolves once the acknowledgment is on its way. */
  readonly settled = this.#settled.promise;

  constructor(options: ShownTextOptions<Chunk>) {
    this.#options = options;
    this.#watch(options.idleMs);
    this.#stopListening = onAbort(options.signal, this.settle);
  }

  /** The consumer waits for the model. However long that takes, the consumer is there. */
  ask(): void {
    this.isAsked = true;
  }

  /** To be called just before the chunk is handed over. */
  add(chunk: Chunk): void {
    this.isAsked = false;
    this.#lastAtMs = performance.now();
    if (!this.#isSettled) {
      this.#text = (this.#text + this.#read(chunk)).slice(0, TEXT_CHARS_MAX);
    }
  }

  /** Acknowledges what was added. Later chunks don't count. May be called at any time, and again. */
  readonly settle = (): void => {
    if (!this.#isSettled) {
      this.#isSettled = true;
      this.#stopTimer();
      this.#stopListening();
      void this.#options.injected.acknowledge(this.#text);
      this.#settled.resolve();
    }
  };

  #read(chunk: Chunk): string {
    const { textOf, report, injected } = this.#options;
    try {
      const text = textOf(chunk) ?? "";
      if (typeof text === "string") {
        return text;
      }
      throw new TypeError(`no text but a value of type ${typeof text}`);
    } catch (error) {
      report({ kind: "text_unreadable", adResponseId: injected.adResponseId, error });
      return "";
    }
  }

  #watch(waitMs: number): void {
    const { idleMs } = this.#options;
    const look = () => {
      const leftMs = this.isAsked ? idleMs : this.#lastAtMs + idleMs - performance.now();
      if (leftMs > 0) {
        this.#watch(leftMs);
      } else {
        this.settle();
      }
    };
    this.#stopTimer = startTimer(waitMs, look, true);
  }
}

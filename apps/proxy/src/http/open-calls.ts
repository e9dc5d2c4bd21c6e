/** The calls that are open: which of them are idle upstream for too long, how many answers stream, and when all have finished. */

/** A call, or its body on its way here, that is watched. The watch sets both members. */
export interface WatchedCall {
  /** Whether a byte has moved since the last look. */
  hasMoved: boolean;
  /** Since when none has, as far as the looks know. */
  idleSinceMs: number;
  /** Ends it: no byte has moved for the time limit, or this process stops. */
  end(reason: "idle" | "stopped"): void;
}

/** Looks at all calls again and again, because a timer for each one would have to be set anew at each chunk. */
export class OpenCalls {
  readonly #idleTimeoutMs: number;
  readonly #calls = new Set<WatchedCall>();
  #timer: NodeJS.Timeout | undefined;
  #isStopped = false;
  /** Calls that have begun and haven't finished. */
  #unfinished = 0;
  #onAllFinished: (() => void) | undefined;
  /** Answers that stream now. */
  streams = 0;

  constructor(idleTimeoutMs: number) {
    this.#idleTimeoutMs = idleTimeoutMs;
  }

  start(): void {
    if (!this.#isStopped && this.#timer === undefined) {
      const intervalMs = Math.min(LOOK_INTERVAL_MAX_MS, Math.ceil(this.#idleTimeoutMs / LOOKS_PER_LIMIT));
      this.#timer = setInterval(() => this.#look(), intervalMs).unref();
    }
  }

  /** Looks no more. The listener has cut its calls before. */
  stop(): void {
    this.#isStopped = true;
    clearInterval(this.#timer);
  }

  get isRunning(): boolean {
    return this.#timer !== undefined && !this.#isStopped;
  }

  /** A call has come. */
  begin(): void {
    this.#unfinished += 1;
  }

  /** The response of a call has closed, and its step has ended. */
  finish(): void {
    this.#unfinished -= 1;
    if (this.#unfinished === 0) {
      this.#onAllFinished?.();
    }
  }

  /** Resolves once no call is left that hasn't finished. To be called once, when no more calls come. */
  async allFinished(): Promise<void> {
    if (this.#unfinished > 0) {
      await new Promise<void>((resolve) => {
        this.#onAllFinished = resolve;
      });
    }
  }

  /** Ends all calls that are open. */
  endAll(): void {
    for (const call of [...this.#calls]) {
      this.#calls.delete(call);
      call.end("stopped");
    }
  }

  add(call: WatchedCall): void {
    call.idleSinceMs = performance.now();
    this.#calls.add(call);
  }

  remove(call: WatchedCall): void {
    this.#calls.delete(call);
  }

  #look(): void {
    const nowMs = performance.now();
    for (const call of this.#calls) {
      if (call.hasMoved) {
        call.hasMoved = false;
        call.idleSinceMs = nowMs;
      } else if (nowMs - call.idleSinceMs >= this.#idleTimeoutMs) {
        this.#calls.delete(call);
        call.end("idle");
      }
    }
  }
}

const LOOK_INTERVAL_MAX_MS = 1000;
const LOOKS_PER_LIMIT = 10;

/**
 * Finds ads in texts in a thread of its own, so that no text holds up what else the process does.
 *
 * 1. One text is searched at a time. The thread begins with the first one: most workers never need it, and it takes 50 MB.
 * 2. A text has a time, its wait in the queue included. Once that is over, the thread ends with its search, and the next text gets
 *    a new one. So no text can hold up the others for long.
 * 3. Nothing rejects. What isn't found out in time, or for lack of room, is `unknown`.
 */
import { type Finding, type TurnAd, UNKNOWN_FINDING } from "@adrelay/core";
import { Tinypool } from "tinypool";
import type { JudgeTask } from "./judge-thread.ts";

/** Texts that wait or are searched. Each may have a megabyte. */
const QUEUE_MAX = 64;
const TIMEOUT_MS = 1000;
/** A text of 64 KiB never needs as much. */
const HEAP_MAX_MB = 128;
/** By itself Node gives a thread several times as much, and a search hardly needs it. */
const YOUNG_MAX_MB = 12;

export interface AnswerJudgeOptions {
  /** To be told why a finding is unknown. */
  onFailed(err: unknown): void;
  readonly timeoutMs?: number;
  readonly queueMax?: number;
}

/** As many texts wait as may wait. */
class NoRoomError extends Error {
  override readonly name = "NoRoomError";
}

export class AnswerJudge {
  readonly #options: AnswerJudgeOptions;
  #phase: "new" | "started" | "stopped" = "new";
  #pool: Tinypool | undefined;
  #stopping: Promise<void> | undefined;
  #unanswered = 0;

  constructor(options: AnswerJudgeOptions) {
    this.#options = options;
  }

  get isRunning(): boolean {
    return this.#phase === "started";
  }

  start(): void {
    if (this.#phase === "new") {
      this.#phase = "started";
    }
  }

  /** What is asked from now on is unknown, and so is what waits. */
  stop(): Promise<void> {
    this.#phase = "stopped";
    this.#stopping ??= this.#pool?.destroy();
    return this.#stopping ?? Promise.resolve();
  }

  /** Undefined as an ad: nothing is known of it. The signal ends the search before its time. */
  async find(text: string, ad: TurnAd | undefined, signal?: AbortSignal): Promise<Finding> {
    if (text.trim() === "") {
      return { mention: "none", isLabelled: false };
    }
    if (ad === undefined || !this.isRunning) {
      return UNKNOWN_FINDING;
    }
    // Counted here: tinypool rejects a promise that nobody has when the time of a task is over for which its queue had no room.
    if (this.#unanswered >= (this.#options.queueMax ?? QUEUE_MAX)) {
      this.#options.onFailed(new NoRoomError("too many texts wait"));
      return UNKNOWN_FINDING;
    }
    this.#unanswered += 1;
    return await this.#search({ text, ad }, signal).finally(() => {
      this.#unanswered -= 1;
    });
  }

  async #search(task: JudgeTask, signal: AbortSignal | undefined): Promise<Finding> {
    try {
      const timeout = AbortSignal.timeout(this.#options.timeoutMs ?? TIMEOUT_MS);
      const limit = signal === undefined ? timeout : AbortSignal.any([timeout, signal]);
      return await this.#openPool().run(task, { signal: limit });
    } catch (err) {
      if (this.isRunning && signal?.aborted !== true) {
        this.#options.onFailed(err);
      }
      return UNKNOWN_FINDING;
    }
  }

  #openPool(): Tinypool {
    if (this.#pool === undefined) {
      this.#pool = new Tinypool({
        filename: new URL("./judge-thread.ts", import.meta.url).href,
        name: "runTask",
        minThreads: 1,
        maxThreads: 1,
        resourceLimits: { maxOldGenerationSizeMb: HEAP_MAX_MB, maxYoungGenerationSizeMb: YOUNG_MAX_MB },
      });
      // Of a thread that ends while it searches nothing.
      this.#pool.on("error", (err) => this.#options.onFailed(err));
    }
    return this.#pool;
  }
}

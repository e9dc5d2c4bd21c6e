/**
 * Finds ads in texts in a thread of its own, so that no text holds up what else the process does.
 *
 * 1. One message at a time is searched. The thread begins with the first one: most workers never need it, and it takes 50 MB.
 * 2. Texts that come within `collectMs` go to the thread in one message, because a message costs more than the search of a short
 *    text. Long texts don't share a message, so a message takes no longer than the longest text.
 * 3. A message has a time, its wait in the queue included. Once that is over, the thread ends with its search, and the next message
 *    gets a new one. So no text can hold up the others for long.
 * 4. A text that can't mention its ad, which a quick look tells, isn't searched.
 * 5. Nothing rejects. What isn't found out in time, or for lack of room, is `unknown`.
 */
import { type Finding, type TurnAd, UNKNOWN_FINDING } from "@adrelay/core";
import { Tinypool } from "tinypool";
import type { JudgeTask } from "./judge-thread.ts";
import { mayMention } from "./may-mention.ts";
import { SEARCHED_CHARS_MAX } from "./searched-chars.ts";

/** Texts that wait or are searched. Of each, only what is searched is kept. */
const QUEUE_MAX = 64;
const TIMEOUT_MS = 1000;
/** A text of 64 KiB never needs as much. */
const HEAP_MAX_MB = 128;
/** By itself Node gives a thread several times as much, and a search hardly needs it. */
const YOUNG_MAX_MB = 12;

export interface AnswerJudgeOptions {
  /** To be told why findings are unknown. */
  onFailed(err: unknown): void;
  /** For how long texts are collected before they go to the thread; default: 0, until the event loop's next turn. */
  readonly collectMs?: number;
  readonly timeoutMs?: number;
  readonly queueMax?: number;
}

const NO_MENTION: Finding = { mention: "none", isLabelled: false };

/** As many texts wait as may wait. */
class NoRoomError extends Error {
  override readonly name = "NoRoomError";
}

/** A text whose finding is asked for. */
interface Asked {
  /** Undefined if the text can't mention the ad. Its finding comes with those of others, so that their turns are settled together. */
  readonly task: JudgeTask | undefined;
  readonly signal: AbortSignal | undefined;
  resolve(finding: Finding): void;
}

export class AnswerJudge {
  readonly #options: AnswerJudgeOptions;
  #phase: "new" | "started" | "stopped" = "new";
  #pool: Tinypool | undefined;
  #stopping: Promise<void> | undefined;
  /** For the next message. */
  #collected: Asked[] = [];
  #collectedChars = 0;
  #timer: NodeJS.Timeout | undefined;
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
    this.#send();
    this.#stopping ??= this.#pool?.destroy();
    return this.#stopping ?? Promise.resolve();
  }

  /** Undefined as an ad: nothing is known of it. The signal ends the search of its message before its time. */
  async find(text: string, ad: TurnAd | undefined, signal?: AbortSignal): Promise<Finding> {
    if (text.trim() === "") {
      return NO_MENTION;
    }
    if (ad === undefined || !this.isRunning) {
      return UNKNOWN_FINDING;
    }
    // One more than is searched, so that the thread knows of the rest.
    const task = { text: text.slice(0, SEARCHED_CHARS_MAX + 1), ad };
    if (!needsSearch(task)) {
      return await new Promise((resolve) => this.#collect({ task: undefined, signal, resolve }));
    }
    // Counted here: tinypool rejects a promise that nobody has when the time of a task is over for which its queue had no room.
    if (this.#unanswered >= (this.#options.queueMax ?? QUEUE_MAX)) {
      this.#options.onFailed(new NoRoomError("too many texts wait"));
      return UNKNOWN_FINDING;
    }
    this.#unanswered += 1;
    return await new Promise((resolve) => this.#collect({ task, signal, resolve }));
  }

  #collect(asked: Asked): void {
    const chars = asked.task?.text.length ?? 0;
    if (this.#collectedChars + chars > SEARCHED_CHARS_MAX) {
      this.#send();
    }
    this.#collected.push(asked);
    this.#collectedChars += chars;
    this.#timer ??= setTimeout(() => this.#send(), this.#options.collectMs ?? 0);
  }

  #send(): void {
    const asked = this.#collected;
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#collected = [];
    this.#collectedChars = 0;
    if (asked.length > 0) {
      void this.#answer(asked);
    }
  }

  async #answer(asked: readonly Asked[]): Promise<void> {
    for (const { task, resolve } of asked) {
      if (task === undefined) {
        resolve(this.isRunning ? NO_MENTION : UNKNOWN_FINDING);
      }
    }
    const searched = asked.filter(({ task }) => task !== undefined);
    const findings = this.isRunning && searched.length > 0 ? await this.#search(searched) : [];
    for (const [at, { resolve }] of searched.entries()) {
      const finding = findings[at];
      if (finding instanceof Error) {
        this.#options.onFailed(finding);
      }
      this.#unanswered -= 1;
      resolve(finding === undefined || finding instanceof Error ? UNKNOWN_FINDING : finding);
    }
  }

  async #search(asked: readonly Asked[]): Promise<readonly (Finding | Error)[]> {
    const signals = new Set(asked.flatMap(({ signal }) => signal ?? []));
    try {
      const timeout = AbortSignal.timeout(this.#options.timeoutMs ?? TIMEOUT_MS);
      const tasks = asked.flatMap(({ task }) => task ?? []);
      return await this.#openPool().run(tasks, { signal: AbortSignal.any([timeout, ...signals]) });
    } catch (err) {
      if (this.isRunning && ![...signals].some(({ aborted }) => aborted)) {
        this.#options.onFailed(err);
      }
      return [];
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

/** Of a text that is too long nobody knows what isn't searched. */
function needsSearch({ text, ad }: JudgeTask): boolean {
  return text.length > SEARCHED_CHARS_MAX || mayMention(text, ad);
}

import { fileURLToPath } from "node:url";
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { Logger } from "pino";
import { Piscina } from "piscina";
import { type Embedder, EmbeddingModelError, type EmbedResult } from "./embedder.ts";
import type { ThreadAnswer, ThreadTask } from "./embedding-thread.ts";
import type { EmbedderOptions } from "./sentence-embedder.ts";
import type { TextRole } from "./text-prefixes.ts";

const THREAD_FILE = fileURLToPath(new URL("./embedding-thread.ts", import.meta.url));
/** So many texts may wait; at the tens of milliseconds that one takes, more would be overdue anyway. */
export const WAITING_MAX = 32;

type Pool = Piscina<ThreadTask, ThreadAnswer>;

/**
 * An embedder in a thread of its own, one text at a time, with a bounded queue. A text whose time is up while it
 * waits is not run; one that is running by then is, and its vector is dropped. A thread that dies fails the text
 * that it had and is replaced.
 */
export class EmbeddingPool implements Embedder {
  readonly modelId: string;
  readonly dimensions: number;
  readonly #pool: Pool;
  readonly #log: Logger;
  #isStopped = false;

  private constructor(pool: Pool, log: Logger, model: { modelId: string; dimensions: number }) {
    this.#pool = pool;
    this.#log = log;
    this.modelId = model.modelId;
    this.dimensions = model.dimensions;
  }

  /** Starts the thread and loads the model. Throws an EmbeddingModelError if the model can't be used. */
  static async open(options: EmbedderOptions, log: Logger): Promise<EmbeddingPool> {
    const pool: Pool = new Piscina({
      filename: THREAD_FILE,
      name: "runTask",
      workerData: options,
      minThreads: 1,
      maxThreads: 1,
      maxQueue: WAITING_MAX,
      // Inference has threads of its own that want to be heard: the thread must not sleep on a lock.
      atomics: "disabled",
    });
    // Of a thread that dies between two texts; without a listener the process would end.
    pool.on("error", (err) => log.warn({ event: "embedding_failed", err }));
    const answer = await pool.run({ kind: "load" });
    if (answer.kind !== "loaded") {
      await pool.destroy();
      throw new EmbeddingModelError(answer.kind === "faulty" ? answer.fault : "the model wasn't loaded");
    }
    return new EmbeddingPool(pool, log, answer);
  }

  async embed(text: string, role: TextRole, timeoutMs: number): Promise<EmbedResult> {
    // A pool that was destroyed would start a thread again.
    if (this.#isStopped) {
      return { kind: "refused", reason: "failed" };
    }
    if (this.#pool.queueSize >= WAITING_MAX) {
      return { kind: "refused", reason: "busy" };
    }
    try {
      const task = { kind: "embed", text, role, notAfterMs: Date.now() + timeoutMs } as const;
      return resultOf(await withDeadline(this.#pool.run(task), timeoutMs));
    } catch (err) {
      if (!this.#isStopped) {
        this.#log.warn({ event: "embedding_failed", err });
      }
      return { kind: "refused", reason: "failed" };
    }
  }

  /** Ends the thread; texts that wait are refused. */
  async stop(): Promise<void> {
    this.#isStopped = true;
    await this.#pool.destroy();
  }
}

function resultOf(answer: ThreadAnswer | typeof OVERDUE): EmbedResult {
  if (answer === OVERDUE || answer.kind === "overdue") {
    return { kind: "refused", reason: "overdue" };
  }
  return answer.kind === "vector" ? answer : { kind: "refused", reason: "failed" };
}

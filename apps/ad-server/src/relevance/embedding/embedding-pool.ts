import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { Logger } from "pino";
import { Piscina } from "piscina";
import { Counter, type Registry } from "prom-client";
import type { EmbeddingOptions } from "./embedding-settings.ts";
import type { ThreadAnswer, ThreadTask } from "./embedding-thread.ts";
import { EmbeddingModelError, fetchHubModel, type TextRole } from "./model-files.ts";
import type { EmbedderOptions } from "./sentence-embedder.ts";

/** Why a text has no vector: too many texts are waiting, the text took too long, or the thread failed. */
const EMBED_REFUSALS = ["busy", "overdue", "failed"] as const;
export type EmbedRefusal = (typeof EMBED_REFUSALS)[number];

export type EmbedResult =
  | { readonly kind: "vector"; readonly vector: Float32Array }
  | { readonly kind: "refused"; readonly reason: EmbedRefusal };

/** Turns texts into directions of meaning. */
export interface Embedder {
  /** Only vectors with the same id can be compared. */
  readonly modelId: string;
  readonly dimensions: number;
  /** Never rejects. */
  embed(text: string, role: TextRole, timeoutMs: number): Promise<EmbedResult>;
}

const THREAD_FILE = fileURLToPath(new URL("./embedding-thread.ts", import.meta.url));
/** How many texts may wait. Each takes tens of milliseconds, so further texts would be overdue anyway. */
export const WAITING_MAX = 32;

type Pool = Piscina<ThreadTask, ThreadAnswer>;

/**
 * An embedder in a separate thread. It embeds one text at a time and has a bounded queue. A text whose time is up
 * while it waits is not run; if its time is up while it runs, its vector is dropped. If the thread dies, the text that
 * it was running fails and a new thread takes its place.
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
      // ONNX Runtime has threads that send messages to this thread, so it must not sleep on a lock.
      atomics: "disabled",
    });
    // Emitted when a thread dies between two texts. Without a listener the process would exit.
    pool.on("error", (err) => log.warn({ event: "embedding_failed", err }));
    const answer = await pool.run({ kind: "load" });
    if (answer.kind !== "loaded") {
      await pool.destroy();
      throw new EmbeddingModelError(answer.kind === "faulty" ? answer.fault : "the model wasn't loaded");
    }
    return new EmbeddingPool(pool, log, answer);
  }

  async embed(text: string, role: TextRole, timeoutMs: number): Promise<EmbedResult> {
    // A destroyed pool would start a new thread.
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

  /** Stops the thread. Texts that wait are refused. */
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

/** Loads the model of the settings, from its folder or from the hub. Throws an EmbeddingModelError if it can't. */
export async function openEmbedder(options: EmbeddingOptions, log: Logger): Promise<EmbeddingPool> {
  const { source, hubUrl, cacheFolder, prefixes, tokensMax, threads } = options;
  const folder =
    typeof source === "string"
      ? source
      : await fetchHubModel(source, { hubUrl, folder: join(cacheFolder, "models"), log });
  const embedder = await EmbeddingPool.open({ folder, prefixes, tokensMax, threads }, log);
  log.info({ event: "embedding_model_loaded", folder, dimensions: embedder.dimensions });
  return embedder;
}

/** `adserver_embeddings_refused_total{reason}` of this process: prompts that got no ad because they have no vector. */
export class EmbeddingMetrics {
  readonly #refused: Counter<"reason">;

  constructor(registry: Registry) {
    this.#refused = new Counter({
      name: "adserver_embeddings_refused_total",
      help: "Prompts that got no ad for want of a vector, by reason (busy, overdue, failed).",
      labelNames: ["reason"],
      registers: [registry],
    });
    for (const reason of EMBED_REFUSALS) {
      this.#refused.inc({ reason }, 0);
    }
  }

  refused(reason: EmbedRefusal): void {
    this.#refused.inc({ reason });
  }
}

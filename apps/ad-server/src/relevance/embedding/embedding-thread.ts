/**
 * The thread in which a model runs, for inference holds a thread for tens of milliseconds. The model is loaded
 * with the first task, so a thread that replaces a dead one loads it again by itself.
 */
import { workerData } from "piscina";
import { type EmbedderOptions, type EmbedderResult, loadSentenceEmbedder } from "./sentence-embedder.ts";
import type { TextRole } from "./text-prefixes.ts";

export type ThreadTask =
  | { readonly kind: "load" }
  | {
      readonly kind: "embed";
      readonly text: string;
      readonly role: TextRole;
      /** Nobody waits for the answer after that; milliseconds since 1970. */
      readonly notAfterMs: number;
    };

export type ThreadAnswer =
  | { readonly kind: "loaded"; readonly modelId: string; readonly dimensions: number }
  | { readonly kind: "vector"; readonly vector: Float32Array }
  | { readonly kind: "overdue" }
  | { readonly kind: "faulty"; readonly fault: string };

const options: EmbedderOptions = workerData;
let loading: Promise<EmbedderResult> | undefined;

/** What the pool calls, by this name. */
export async function runTask(task: ThreadTask): Promise<ThreadAnswer> {
  loading ??= loadSentenceEmbedder(options);
  const loaded = await loading;
  if (loaded.kind === "faulty") {
    return loaded;
  }
  const { embedder } = loaded;
  switch (task.kind) {
    case "load":
      return { kind: "loaded", modelId: embedder.modelId, dimensions: embedder.dimensions };
    case "embed":
      return Date.now() > task.notAfterMs
        ? { kind: "overdue" }
        : { kind: "vector", vector: await embedder.embed(task.text, task.role) };
    default:
      return task satisfies never;
  }
}

/** The thread of EmbeddingPool. It has one model, and so has a thread that replaces a dead one. */
import { workerData } from "piscina";
import type { TextRole } from "./model-files.ts";
import { type EmbedderOptions, loadSentenceEmbedder } from "./sentence-embedder.ts";

export type ThreadTask =
  | { readonly kind: "load" }
  | {
      readonly kind: "embed";
      readonly text: string;
      readonly role: TextRole;
      /** Nothing waits for the answer after this time, in milliseconds since 1970. */
      readonly notAfterMs: number;
    };

export type ThreadAnswer =
  | { readonly kind: "loaded"; readonly modelId: string; readonly dimensions: number }
  | { readonly kind: "vector"; readonly vector: Float32Array }
  | { readonly kind: "overdue" }
  | { readonly kind: "faulty"; readonly fault: string };

/** The thread's entry point: Piscina awaits it once, and calls the function for each task. `workerData` has the options. */
export const runTask = makeRunTask(workerData);

async function makeRunTask(options: EmbedderOptions): Promise<(task: ThreadTask) => Promise<ThreadAnswer>> {
  const loaded = await loadSentenceEmbedder(options);
  return async (task) => {
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
  };
}

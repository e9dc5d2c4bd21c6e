import { Counter, type Registry } from "prom-client";
import { EMBED_REFUSALS, type EmbedRefusal } from "./embedder.ts";

/** `adserver_embeddings_refused_total{reason}`: prompts without an ad for busy, overdue or failed. Of this process. */
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

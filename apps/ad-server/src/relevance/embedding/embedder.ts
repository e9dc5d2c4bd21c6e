import { CannotStartError } from "@adrelay/service-kit";
import type { TextRole } from "./text-prefixes.ts";

/** Why a text has no vector: too many are waiting, it took too long, or the thread failed. */
export const EMBED_REFUSALS = ["busy", "overdue", "failed"] as const;
export type EmbedRefusal = (typeof EMBED_REFUSALS)[number];

export type EmbedResult =
  | { readonly kind: "vector"; readonly vector: Float32Array }
  | { readonly kind: "refused"; readonly reason: EmbedRefusal };

/** Turns texts into directions of meaning. */
export interface Embedder {
  /** Vectors with the same id compare. */
  readonly modelId: string;
  readonly dimensions: number;
  /** Never rejects. */
  embed(text: string, role: TextRole, timeoutMs: number): Promise<EmbedResult>;
}

/** A model that can't be used; the message names the file and the reason. */
export class EmbeddingModelError extends CannotStartError {
  override readonly name = "EmbeddingModelError";
}

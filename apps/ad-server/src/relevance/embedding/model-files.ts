import { existsSync } from "node:fs";
import { join } from "node:path";

/** Where a folder of a sentence-embedding model has its weights: the smaller, the earlier. */
export const WEIGHTS_NAMES = ["model.onnx", "onnx/model_quantized.onnx", "onnx/model.onnx"] as const;
export const TOKENIZER_NAME = "tokenizer.json";
/** What a model may have besides; without them, defaults hold. */
export const TOKENIZER_CONFIG_NAME = "tokenizer_config.json";
export const SENTENCE_CONFIG_NAME = "config_sentence_transformers.json";

export interface ModelFiles {
  readonly weights: string;
  readonly tokenizer: string;
  readonly tokenizerConfig: string;
  readonly sentenceConfig: string;
}

export type ModelFilesResult =
  | { readonly kind: "ok"; readonly files: ModelFiles }
  | { readonly kind: "faulty"; readonly fault: string };

/** Finds the files of a model in a folder as the hub lays them out. Whether they can be used shows in loading. */
export function findModelFiles(folder: string): ModelFilesResult {
  const weights = WEIGHTS_NAMES.map((name) => join(folder, name)).find((file) => existsSync(file));
  const tokenizer = join(folder, TOKENIZER_NAME);
  if (weights === undefined) {
    return { kind: "faulty", fault: `${folder} has none of ${WEIGHTS_NAMES.join(", ")}` };
  }
  if (!existsSync(tokenizer)) {
    return { kind: "faulty", fault: `${tokenizer} is missing` };
  }
  const tokenizerConfig = join(folder, TOKENIZER_CONFIG_NAME);
  return {
    kind: "ok",
    files: { weights, tokenizer, tokenizerConfig, sentenceConfig: join(folder, SENTENCE_CONFIG_NAME) },
  };
}

import {
  durationType,
  integerType,
  listType,
  optionalSetting,
  setting,
  textType,
} from "@adrelay/service-kit";
import { z } from "zod";
import { PREFIX_MODES, parseHubModel } from "./model-files.ts";

/** `lexical` finds ads by the fitted model and the words of ads; `embedding` also uses a sentence-embedding model. */
const RELEVANCE_ENGINES = ["lexical", "embedding"] as const;

const TIMEOUT_MS_MAX = 30_000;

const hubModelType = z.string().transform((text, context) => {
  const model = parseHubModel(text);
  if (model === undefined) {
    context.addIssue({
      code: "custom",
      message: "must be owner/name@ and a commit of 40 hexadecimal digits",
    });
    return z.NEVER;
  }
  return model;
});

/** The process runs what the hub sends, so the hub must use TLS or be on this machine. */
const hubUrlType = z
  .url({ protocol: /^https?$/, error: "must be a URL" })
  .refine((url) => /^https:|^http:\/\/(localhost|127\.0\.0\.1|\[::1\])([:/]|$)/.test(url), "must be https");

const languagesType = listType.refine(
  (languages) => languages.length > 0 && languages.every((language) => /^[a-z]{2}$/.test(language)),
  "must be ISO 639-1 codes, separated by commas",
);

export const EMBEDDING_SETTINGS = {
  RELEVANCE: setting(
    z.enum(RELEVANCE_ENGINES),
    "lexical",
    "lexical: nothing to download; embedding: a sentence-embedding model, see apps/ad-server/README.md.",
  ),
  EMBEDDING_MODEL_DIR: optionalSetting(
    textType,
    "Folder of the embedding model: model.onnx (or onnx/model_quantized.onnx, onnx/model.onnx) and tokenizer.json.",
  ),
  EMBEDDING_MODEL: optionalSetting(
    hubModelType,
    "Or the model on the hub, as owner/name@commit: it is downloaded at the first start.",
  ),
  EMBEDDING_HUB_URL: setting(hubUrlType, "https://huggingface.co", "Where models are downloaded from."),
  EMBEDDING_CACHE_DIR: setting(textType, ".adrelay", "Folder for downloaded models and the vectors of ads."),
  EMBEDDING_PREFIXES: setting(
    z.enum(PREFIX_MODES),
    "model",
    "What texts are given to the model with: what its settings say (model), query: and passage: (e5), or none.",
  ),
  EMBEDDING_LANGUAGES: setting(
    languagesType,
    "en",
    "Languages that the embedding model was made for; prompts in others are ranked as by lexical.",
  ),
  EMBEDDING_TOKENS_MAX: setting(integerType(8, 512), "128", "How many tokens of a prompt or ad are read."),
  EMBEDDING_TIMEOUT: setting(
    durationType.pipe(z.number().max(TIMEOUT_MS_MAX, "must be at most 30s")),
    "500ms",
    "After that a prompt that has no vector yet gets no ad.",
  ),
  EMBEDDING_THREADS: setting(integerType(1, 16), "1", "Threads of one inference."),
} as const;

export type EmbeddingSettings = Readonly<z.infer<z.ZodObject<typeof EMBEDDING_SETTINGS>>>;

/** Checks settings against each other, for `superRefine` of the app's settings. */
export function checkEmbeddingSettings(
  settings: Pick<EmbeddingSettings, "RELEVANCE" | "EMBEDDING_MODEL_DIR" | "EMBEDDING_MODEL">,
  addIssue: (issue: { path: string[]; message: string }) => void,
): void {
  const { RELEVANCE, EMBEDDING_MODEL_DIR, EMBEDDING_MODEL } = settings;
  if (EMBEDDING_MODEL_DIR !== undefined && EMBEDDING_MODEL !== undefined) {
    addIssue({ path: ["EMBEDDING_MODEL"], message: "must not be set beside EMBEDDING_MODEL_DIR" });
  }
  if (RELEVANCE === "embedding" && EMBEDDING_MODEL_DIR === undefined && EMBEDDING_MODEL === undefined) {
    addIssue({
      path: ["RELEVANCE"],
      message: "embedding wants EMBEDDING_MODEL_DIR or EMBEDDING_MODEL to be set",
    });
  }
}

/** The options that the app starts the embedding model with; undefined if relevance is lexical. */
export function embeddingOptionsOf(settings: EmbeddingSettings) {
  const { EMBEDDING_MODEL_DIR: folder, EMBEDDING_MODEL: hubModel } = settings;
  const source = folder === undefined ? hubModel : folder;
  if (settings.RELEVANCE !== "embedding" || source === undefined) {
    return undefined;
  }
  return {
    source,
    hubUrl: settings.EMBEDDING_HUB_URL,
    cacheFolder: settings.EMBEDDING_CACHE_DIR,
    prefixes: settings.EMBEDDING_PREFIXES,
    languages: settings.EMBEDDING_LANGUAGES,
    tokensMax: settings.EMBEDDING_TOKENS_MAX,
    timeoutMs: settings.EMBEDDING_TIMEOUT,
    threads: settings.EMBEDDING_THREADS,
  } as const;
}
export type EmbeddingOptions = NonNullable<ReturnType<typeof embeddingOptionsOf>>;

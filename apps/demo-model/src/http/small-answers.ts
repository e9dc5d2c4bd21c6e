/** Models and embeddings: just enough that clients which ask for them go on. */
import { createHash } from "node:crypto";
import { z } from "zod";
import { tokensOf } from "../answer/ask.ts";
import type { Api } from "./api-errors.ts";

const DEMO_MODEL = "demo-model";
const CREATED_SECONDS = 1_767_225_600;

/** Whatever model is named, the same one answers. */
export function formatModel(api: Api, id: string): object {
  switch (api) {
    case "openai":
      return { id, object: "model", created: CREATED_SECONDS, owned_by: "adrelay" };
    case "anthropic":
      return {
        type: "model",
        id,
        display_name: "Adrelay's demo model",
        created_at: new Date(CREATED_SECONDS * 1000).toISOString(),
      };
    default:
      return api satisfies never;
  }
}

export function formatModels(api: Api): object {
  const data = [formatModel(api, DEMO_MODEL)];
  switch (api) {
    case "openai":
      return { object: "list", data };
    case "anthropic":
      return { data, has_more: false, first_id: DEMO_MODEL, last_id: DEMO_MODEL };
    default:
      return api satisfies never;
  }
}

const embeddingsSchema = z.looseObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(z.union([z.string(), z.number(), z.array(z.number())])).min(1)]),
  encoding_format: z.enum(["float", "base64"]).nullish(),
});

const DIMENSIONS = 8;

/** Small vectors that differ by text, and mean nothing. Undefined if the body isn't valid. */
export function formatEmbeddings(body: unknown, requestChars: number): object | undefined {
  const parsed = embeddingsSchema.safeParse(body);
  if (!parsed.success) {
    return undefined;
  }
  const { model, input, encoding_format: format } = parsed.data;
  const areTexts = Array.isArray(input) && typeof input[0] !== "number";
  const data = (areTexts ? input : [input]).map((text, index) => {
    const vector = vectorOf(JSON.stringify(text));
    const embedding = format === "base64" ? Buffer.from(vector.buffer).toString("base64") : [...vector];
    return { object: "embedding", index, embedding };
  });
  const tokens = tokensOf(requestChars);
  return { object: "list", data, model, usage: { prompt_tokens: tokens, total_tokens: tokens } };
}

function vectorOf(text: string): Float32Array<ArrayBuffer> {
  const digest = createHash("sha256").update(text).digest();
  return Float32Array.from(
    { length: DIMENSIONS },
    (_, at) => (digest.readUInt16LE(at * 2) - 32_768) / 65_536,
  );
}

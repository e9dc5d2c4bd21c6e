import { gunzipSync } from "node:zlib";
import { z } from "zod";

/*
 * The classes of the model, which are the labels of the prompts that it was fitted to:
 * - the id of a category: the prompt has a need that ads of this category serve
 * - `other_need`: it wants to buy or hire something else
 * - `none`: there is nothing to sell
 * - `reject:<topic>`: an ad would be wrong
 */
export const NONE = "none";
export const OTHER_NEED = "other_need";
export const REJECT_PREFIX = "reject:";

/** The fitted weights. Each row has one weight a class, in the order of `classes`. */
export interface ModelWeights {
  readonly classes: readonly string[];
  /** SHA-256 of the prompts that the model was fitted to, in hexadecimal. */
  readonly fittedTo: string;
  /** Hashes of the sparse features that have weights. */
  readonly features: Uint32Array;
  /** One row a feature, in the order of `features`, in units of the class's scale. */
  readonly sparse: Int8Array;
  readonly scales: Float32Array;
  /** One row a dimension of the meaning. */
  readonly dense: Float32Array;
  readonly bias: Float32Array;
}

const headerSchema = z.strictObject({
  classes: z.array(z.string()).min(2),
  fittedTo: z.string(),
  features: z.int().min(1),
  dimensions: z.int().min(1),
});

/**
 * Reads the file of a model. It is gzipped: a line of JSON (see headerSchema), then `features`, `scales`, `dense`,
 * `bias` and `sparse`, little-endian. Throws on a file of another form, which is a bug.
 */
export function decodeModel(file: Buffer): ModelWeights {
  const bytes = gunzipSync(file);
  const headerEnd = bytes.indexOf("\n");
  const header = headerSchema.parse(JSON.parse(bytes.toString("utf8", 0, headerEnd)));
  const classCount = header.classes.length;
  let offset = headerEnd + 1;
  // Copied, because an array must start at a multiple of its element's size.
  const next = (byteCount: number): ArrayBuffer => {
    const part = new Uint8Array(byteCount);
    part.set(bytes.subarray(offset, offset + byteCount));
    offset += byteCount;
    return part.buffer;
  };
  return {
    classes: header.classes,
    fittedTo: header.fittedTo,
    features: new Uint32Array(next(header.features * 4)),
    scales: new Float32Array(next(classCount * 4)),
    dense: new Float32Array(next(header.dimensions * classCount * 4)),
    bias: new Float32Array(next(classCount * 4)),
    sparse: new Int8Array(next(header.features * classCount)),
  };
}

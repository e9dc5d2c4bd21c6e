import { gunzipSync, gzipSync } from "node:zlib";
import { z } from "zod";

/** What fitting finds, as it is kept. Weights of one class stand `classes.length` apart. */
export interface ModelWeights {
  /** See prompt-classes.ts. */
  readonly classes: readonly string[];
  /** SHA-256 of the prompts that it was fitted to, in hexadecimal. */
  readonly fittedTo: string;
  /** Hashes of the sparse features that have weights. */
  readonly features: Uint32Array;
  /** Row by row in the order of `features`, in units of the class's scale. */
  readonly sparse: Int8Array;
  readonly scales: Float32Array;
  /** Row by dimension of the meaning. */
  readonly dense: Float32Array;
  readonly bias: Float32Array;
}

const headerSchema = z.strictObject({
  classes: z.array(z.string()).min(2),
  fittedTo: z.string(),
  features: z.int().min(1),
  dimensions: z.int().min(1),
});

/** The file of a model: a line of JSON (see headerSchema), then the arrays in the order below, all gzipped. */
export function encodeModel(weights: ModelWeights): Buffer {
  const { classes, fittedTo, features, dense, sparse, scales, bias } = weights;
  const header = { classes, fittedTo, features: features.length, dimensions: dense.length / classes.length };
  const arrays = [features, scales, dense, bias, sparse].map(
    (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength),
  );
  return gzipSync(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...arrays]), { level: 9 });
}

/** Throws on a file of another form, which is a bug. */
export function decodeModel(file: Buffer): ModelWeights {
  const bytes = gunzipSync(file);
  const headerEnd = bytes.indexOf("\n");
  const header = headerSchema.parse(JSON.parse(bytes.toString("utf8", 0, headerEnd)));
  const classCount = header.classes.length;
  let offset = headerEnd + 1;
  // Copied, for the arrays must start at a multiple of their element's size.
  const take = (byteCount: number): ArrayBuffer => {
    const part = new Uint8Array(byteCount);
    part.set(bytes.subarray(offset, offset + byteCount));
    offset += byteCount;
    return part.buffer;
  };
  return {
    classes: header.classes,
    fittedTo: header.fittedTo,
    features: new Uint32Array(take(header.features * 4)),
    scales: new Float32Array(take(classCount * 4)),
    dense: new Float32Array(take(header.dimensions * classCount * 4)),
    bias: new Float32Array(take(classCount * 4)),
    sparse: new Int8Array(take(header.features * classCount)),
  };
}

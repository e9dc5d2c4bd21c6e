import { gunzipSync } from "node:zlib";
import { z } from "zod";

/*
 * The classes of the model:
 * - the id of a need, such as `car-rental`: something to buy, book, hire or sign up for. The needs cover what ads sell
 *   in general; a catalogue doesn't have to name its categories so.
 * - `other`: something to buy, book or hire that is none of these needs
 * - `none`: there is nothing to sell
 * - `reject:<topic>`: an ad would be wrong
 */
export const OTHER_NEED = "other";
export const NONE = "none";
export const REJECT_PREFIX = "reject:";

/** The fitted weights. A text is read into a hidden vector of `rank` numbers, and from that into classes. */
export interface ModelWeights {
  readonly classes: readonly string[];
  /** SHA-256 of the texts that the model was fitted to, in hexadecimal. */
  readonly fittedTo: string;
  readonly rank: number;
  /** Hashes of the sparse features that have rows. */
  readonly features: Uint32Array;
  /** One row of `rank` bytes a feature, in the order of `features`, in units of the row's scale. */
  readonly rows: Int8Array;
  readonly rowScales: Float32Array;
  /** One row of `rank` weights a dimension of the meaning. */
  readonly meaning: Float32Array;
  /** One row of `rank` weights a class. */
  readonly outputs: Float32Array;
  /** One a class. */
  readonly bias: Float32Array;
}

const headerSchema = z.strictObject({
  classes: z.array(z.string()).min(2),
  fittedTo: z.string(),
  rank: z.int().min(1),
  features: z.int().min(1),
  dimensions: z.int().min(1),
});

/**
 * Reads the file of a model. It is gzipped: a line of JSON (see headerSchema), then `features`, `rowScales`, `meaning`,
 * `outputs`, `bias` and `rows`, little-endian. Throws on a file of another form, which is a bug.
 */
export function decodeModel(file: Buffer): ModelWeights {
  const bytes = gunzipSync(file);
  const headerEnd = bytes.indexOf("\n");
  const header = headerSchema.parse(JSON.parse(bytes.toString("utf8", 0, headerEnd)));
  const { classes, fittedTo, rank, features, dimensions } = header;
  let offset = headerEnd + 1;
  // Copied, because an array must start at a multiple of its element's size.
  const next = (byteCount: number): ArrayBuffer => {
    const part = new Uint8Array(byteCount);
    part.set(bytes.subarray(offset, offset + byteCount));
    offset += byteCount;
    return part.buffer;
  };
  return {
    classes,
    fittedTo,
    rank,
    features: new Uint32Array(next(features * 4)),
    rowScales: new Float32Array(next(features * 4)),
    meaning: new Float32Array(next(dimensions * rank * 4)),
    outputs: new Float32Array(next(classes.length * rank * 4)),
    bias: new Float32Array(next(classes.length * 4)),
    rows: new Int8Array(next(features * rank)),
  };
}

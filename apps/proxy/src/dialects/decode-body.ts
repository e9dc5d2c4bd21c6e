/** Undoes a `content-encoding`: of a stream while it comes, or of a whole body. */
import type { Transform } from "node:stream";
import { promisify } from "node:util";
import {
  brotliDecompress,
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
  gunzip,
  inflate,
  zstdDecompress,
} from "node:zlib";

export type Encoding = "identity" | "gzip" | "deflate" | "br" | "zstd";

/** Undefined for an encoding that can't be undone, and for several at once. */
export function encodingOf(header: string | undefined): Encoding | undefined {
  const name = (header ?? "").trim().toLowerCase();
  switch (name) {
    case "":
    case "identity":
      return "identity";
    case "x-gzip":
      return "gzip";
    case "gzip":
    case "deflate":
    case "br":
    case "zstd":
      return name;
    default:
      return undefined;
  }
}

/** What is decoded comes out as soon as it can. A stream that is cut ends without an error. */
export function createDecoder(encoding: Exclude<Encoding, "identity">): Transform {
  switch (encoding) {
    case "gzip":
      return createGunzip({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH });
    case "deflate":
      return createInflate({ flush: constants.Z_SYNC_FLUSH, finishFlush: constants.Z_SYNC_FLUSH });
    case "br":
      return createBrotliDecompress({
        flush: constants.BROTLI_OPERATION_FLUSH,
        finishFlush: constants.BROTLI_OPERATION_FLUSH,
      });
    case "zstd":
      return createZstdDecompress({ flush: constants.ZSTD_e_flush, finishFlush: constants.ZSTD_e_flush });
    default:
      return encoding satisfies never;
  }
}

/** Undefined if the body can't be decoded, or would be bigger than the limit. */
export async function decodeBody(
  body: Buffer,
  header: string | undefined,
  sizeBytesMax: number,
): Promise<Buffer | undefined> {
  const encoding = encodingOf(header);
  if (encoding === undefined) return undefined;
  if (encoding === "identity") return body.length > sizeBytesMax ? undefined : body;
  try {
    return await DECODERS[encoding](body, { maxOutputLength: sizeBytesMax });
  } catch {
    return undefined;
  }
}

const DECODERS = {
  gzip: promisify<Buffer, { maxOutputLength: number }, Buffer>(gunzip),
  deflate: promisify<Buffer, { maxOutputLength: number }, Buffer>(inflate),
  br: promisify<Buffer, { maxOutputLength: number }, Buffer>(brotliDecompress),
  zstd: promisify<Buffer, { maxOutputLength: number }, Buffer>(zstdDecompress),
};

/** Reads bodies of requests. Content-Length is trusted only as a limit. */
import type { Readable, Transform } from "node:stream";
import {
  constants,
  createBrotliDecompress,
  createGunzip,
  createInflate,
  createZstdDecompress,
} from "node:zlib";
import { countUnescapedBytes, JSON_ESCAPE_FACTOR_MAX } from "@adrelay/contract";
import type { Request, Response } from "express";
import { Pieces } from "./pieces.ts";

/**
 * Reads a request's whole body, decompressed, so that `parseJsonObject` finds it. Nothing is read if `hold` refused; what
 * still arrives is then dropped. It rejects if a body is longer than the limit, is cut off or can't be decompressed;
 * `answerErrors` turns these errors into answers.
 *
 * @param hold asked for each number of bytes before they are held. False: the body is refused. A negative number is given
 *   back, and is never refused
 * @param onRead called with how many bytes were read, decompressed, before the promise settles, also if it rejects. Not called if
 *   none could be read
 */
export type ReadBody = (
  request: Request,
  response: Response,
  hold?: (bytes: number) => boolean,
  onRead?: (bytes: number) => void,
) => Promise<"read" | "not_held">;

/** How many bytes of a body are read at most, if its limit without the escapes of JSON is `bytesMax`. */
export function readBytesMax(bytesMax: number): number {
  return bytesMax * JSON_ESCAPE_FACTOR_MAX;
}

/**
 * Makes a reader of bodies.
 *
 * @param bytesMax limit of a body, counted without the escapes of JSON
 */
export function makeReadBody(bytesMax: number): ReadBody {
  const rawBytesMax = readBytesMax(bytesMax);
  return async (request, _response, hold = holdAnything, onRead = () => {}) => {
    if (Number(request.headers["content-length"]) > rawBytesMax) {
      throw new BodyTooLargeError(bytesMax);
    }
    const decompressor = decompressorOf(request);
    const body =
      decompressor === undefined
        ? await collect({
            request,
            source: request,
            hold,
            onRead,
            bytesMax: lengthMaxOf(request, rawBytesMax),
          })
        : await collectDecompressed({ request, hold, onRead, bytesMax: rawBytesMax }, decompressor);
    if (body === "not_held") {
      return body;
    }
    if (body === "too_large" || (body.length > bytesMax && countUnescapedBytes(body) > bytesMax)) {
      throw new BodyTooLargeError(bytesMax);
    }
    request.body = body;
    return "read";
  };
}

const holdAnything = () => true;

/** Node's parser ends a body exactly at its announced length. */
function lengthMaxOf({ headers }: Request, rawBytesMax: number): number {
  const announced = headers["content-length"];
  return announced === undefined ? rawBytesMax : Number(announced);
}

/** The body is longer than the limit. `answerErrors` reads `status` and `limit`. */
class BodyTooLargeError extends Error {
  override readonly name = "BodyTooLargeError";
  readonly status = 413;
  readonly limit: number;

  constructor(limit: number) {
    super("the body is too large");
    this.limit = limit;
  }
}

/** The caller hung up before the end of its body, or its compression is broken. `answerErrors` reads `status`. */
class BodyUnreadableError extends Error {
  override readonly name = "BodyUnreadableError";
  readonly status = 400;
}

/** `answerErrors` reads `status`. */
class UnknownEncodingError extends Error {
  override readonly name = "UnknownEncodingError";
  readonly status = 415;
}

interface Decompressor {
  readonly create: () => Transform;
  /** What it holds beside the body, at most or nearly so. Its window counts only as far as the body fills it. */
  readonly bytes: number;
}

const KIBIBYTE = 1024;
/** RFC 9659: no window of a body is larger. The allocation of a larger one makes V8 collect garbage, again and again. */
const ZSTD_LIMITS = { params: { [constants.ZSTD_d_windowLogMax]: 23 } };

const DECOMPRESSORS: ReadonlyMap<string, Decompressor> = new Map([
  ["gzip", { create: createGunzip, bytes: 64 * KIBIBYTE }],
  ["deflate", { create: createInflate, bytes: 64 * KIBIBYTE }],
  ["br", { create: createBrotliDecompress, bytes: 512 * KIBIBYTE }],
  ["zstd", { create: () => createZstdDecompress(ZSTD_LIMITS), bytes: 256 * KIBIBYTE }],
]);

/** Undefined if the body isn't compressed. */
function decompressorOf(request: Request): Decompressor | undefined {
  const encoding = request.headers["content-encoding"]?.toLowerCase() ?? "identity";
  const decompressor = DECOMPRESSORS.get(encoding);
  if (decompressor === undefined && encoding !== "identity") {
    throw new UnknownEncodingError(encoding);
  }
  return decompressor;
}

/** Holds what the decompressor needs for as long as it is there. */
async function collectDecompressed(
  given: Omit<Collected, "source">,
  { create, bytes }: Decompressor,
): Promise<Buffer | "too_large" | "not_held"> {
  const { request, hold } = given;
  if (!hold(bytes)) {
    request.resume();
    return "not_held";
  }
  try {
    return await collect({ ...given, source: request.pipe(create()) });
  } finally {
    hold(-bytes);
  }
}

interface Collected {
  readonly request: Request;
  /** The request itself, or what decompresses it. */
  readonly source: Readable;
  readonly hold: (bytes: number) => boolean;
  readonly onRead: (bytes: number) => void;
  readonly bytesMax: number;
}

function collect(given: Collected): Promise<Buffer | "too_large" | "not_held"> {
  const { request, source, hold, onRead, bytesMax } = given;
  return new Promise((resolve, reject) => {
    const pieces = new Pieces(hold, bytesMax);
    let readBytes = 0;
    const end = (result: Buffer | "too_large" | "not_held") => {
      stop();
      resolve(result);
    };
    const onData = (piece: Buffer) => {
      readBytes += piece.length;
      const refusal = pieces.add(piece);
      if (refusal !== undefined) {
        end(refusal);
      }
    };
    const onEnd = () => end(pieces.take());
    const onFault = () => {
      stop();
      reject(new BodyUnreadableError());
    };
    const onClose = () => {
      // What the decompressor hasn't got by now never comes.
      if (source === request || !request.readableEnded) {
        onFault();
      }
    };
    const stop = () => {
      source.off("data", onData).off("end", onEnd);
      request.off("close", onClose);
      if (source !== request) {
        // A later error of it has no meaning.
        source.off("error", onFault).on("error", () => {});
        request.unpipe();
        source.destroy();
      }
      request.resume();
      onRead(readBytes);
    };
    source.on("data", onData).on("end", onEnd);
    request.on("close", onClose);
    if (source !== request) {
      source.on("error", onFault);
    }
  });
}

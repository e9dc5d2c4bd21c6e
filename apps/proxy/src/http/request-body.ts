/**
 * How the body of a call is taken from the caller.
 *
 * 1. The body of a surface is read as a whole, up to a limit and within this process' budget. A longer one goes upstream as it
 *    comes, after what was read of it.
 * 2. Every other body goes upstream as it comes. The caller is read no faster than the model's server takes it.
 * 3. If the caller hangs up before the end of its body, the call upstream is cancelled: its stream ends with an error.
 */
import type { IncomingMessage } from "node:http";
import { PassThrough, type Readable } from "node:stream";
import { Pieces } from "@adrelay/service-kit";

/** What was read of the body of a surface. */
export type SurfaceBody =
  | { readonly kind: "whole"; readonly body: Buffer }
  /** It doesn't fit the limit or the budget. The request is paused after `head`. */
  | { readonly kind: "too_large" | "not_held"; readonly head: readonly Buffer[] }
  /** The caller hung up before its end. */
  | { readonly kind: "cut" };

export interface BodyLimits {
  readonly bytesMax: number;
  /** Asked for each number of bytes before they are held. False: the body goes upstream as it comes. */
  hold(bytes: number): boolean;
}

/** Reads the body of a surface. A body whose length is announced to be too long isn't read at all. */
export function readSurfaceBody(
  request: IncomingMessage,
  { bytesMax, hold }: BodyLimits,
): Promise<SurfaceBody> {
  if (Number(request.headers["content-length"]) > bytesMax) {
    return Promise.resolve({ kind: "too_large", head: [] });
  }
  return new Promise((resolve) => {
    const pieces = new Pieces(hold, bytesMax);
    const end = (result: SurfaceBody) => {
      request.off("data", onData).off("end", onEnd).off("close", onCut).off("error", onCut);
      resolve(result);
    };
    const onData = (piece: Buffer) => {
      const kind = pieces.add(piece);
      if (kind !== undefined) {
        request.pause();
        end({ kind, head: [pieces.take(), piece] });
      }
    };
    const onEnd = () => end({ kind: "whole", body: pieces.take() });
    const onCut = () => end({ kind: "cut" });
    request.on("data", onData).on("end", onEnd).on("close", onCut).on("error", onCut);
  });
}

/** The caller hung up before the end of its body. */
class BodyCutError extends Error {
  override readonly name = "BodyCutError";
}

/** Small, because it is held for each call, beside what the connections hold. */
const PASSED_BYTES_MAX = 64 * 1024;

export interface StreamBodyOptions {
  /** What was read before. */
  readonly head: readonly Buffer[];
  /** Called for each piece that moves. */
  onPiece(): void;
  /** Called once the model's server has taken the head, but for what a connection holds. It may never do so. */
  onHeadTaken(): void;
}

/**
 * The body as a stream of its own: undici destroys the stream that it is given, and the caller's connection must outlive that.
 */
export function streamBody(
  request: IncomingMessage,
  { head, onPiece, onHeadTaken }: StreamBodyOptions,
): Readable {
  const body = new PassThrough({ highWaterMark: PASSED_BYTES_MAX });
  const onClose = () => {
    if (!request.readableEnded) {
      body.destroy(new BodyCutError());
    }
  };
  // undici reports this error, too.
  body.on("error", () => {});
  body.once("close", () => {
    request.off("data", onPiece).off("close", onClose).unpipe(body);
    // The rest, if the model's server has answered before it: the caller's connection can be used again only behind it.
    request.resume();
  });
  request
    .on("error", () => {})
    .on("data", onPiece)
    .once("close", onClose);
  writeInPieces(body, smallPiecesOf(head), onPiece, () => {
    onHeadTaken();
    request.pipe(body);
  });
  return body;
}

/** Writes no faster than the stream is read. If it closes before, `onEnd` is never called. */
function writeInPieces(
  body: PassThrough,
  pieces: Iterator<Buffer>,
  onPiece: () => void,
  onEnd: () => void,
): void {
  for (let next = pieces.next(); next.done !== true; next = pieces.next()) {
    onPiece();
    if (!body.write(next.value)) {
      body.once("drain", () => writeInPieces(body, pieces, onPiece, onEnd));
      return;
    }
  }
  onEnd();
}

function* smallPiecesOf(buffers: readonly Buffer[]): Generator<Buffer> {
  for (const buffer of buffers) {
    for (let at = 0; at < buffer.length; at += PASSED_BYTES_MAX) {
      yield buffer.subarray(at, at + PASSED_BYTES_MAX);
    }
  }
}

/** Whether a request has a body: its framing says so. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

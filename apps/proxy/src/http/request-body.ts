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

/**
 * The body as a stream of its own: undici destroys the stream that it is given, and the caller's connection must outlive that.
 *
 * @param head what was read before
 * @param onPiece called for each piece that comes now
 */
export function streamBody(request: IncomingMessage, head: readonly Buffer[], onPiece: () => void): Readable {
  const body = new PassThrough({ highWaterMark: PASSED_BYTES_MAX });
  const onClose = () => {
    if (!request.readableEnded) {
      body.destroy(new BodyCutError());
    }
  };
  for (const piece of head) {
    body.write(piece);
  }
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
  request.pipe(body);
  return body;
}

/** Whether a request has a body: its framing says so. */
export function hasBody({ headers }: IncomingMessage): boolean {
  return headers["transfer-encoding"] !== undefined || Number(headers["content-length"] ?? 0) > 0;
}

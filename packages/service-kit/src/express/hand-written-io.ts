/** Requests that are read, and answers that are sent, without Express. */
import { randomUUID } from "node:crypto";
import type { Duplex } from "node:stream";
import { makeProblem, PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from "@adrelay/contract";
import type { Request, Response } from "express";

/** The caller hung up before the end of its body. `answerErrors` reads `status`. */
class BodyCutOffError extends Error {
  override readonly name = "BodyCutOffError";
  readonly status = 400;
}

/** Whether a body is sent uncompressed and announces a length within the limit, as almost all bodies do. */
export function isPlainBody({ headers }: Request, bytesMax: number): boolean {
  return headers["content-encoding"] === undefined && Number(headers["content-length"]) <= bytesMax;
}

/**
 * Reads a plain body into `request.body`. Node's parser ends such a body exactly at its announced length, so the only
 * thing that can go wrong is that the caller hangs up.
 */
export function readPlainBody(request: Request): Promise<void> {
  return new Promise((resolve, reject) => {
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      const [only] = chunks;
      request.body = chunks.length === 1 && only !== undefined ? only : Buffer.concat(chunks);
      resolve();
    });
    request.on("close", () => {
      if (request.body === undefined) {
        reject(new BodyCutOffError());
      }
    });
  });
}

const JSON_TYPE = "application/json; charset=utf-8";

/** Sends a JSON text. Express' methods would look up settings for escapes, ETags and freshness, which we don't use. */
export function sendJson(response: Response, status: number, text: string | Buffer, type = JSON_TYPE): void {
  response.statusCode = status;
  response.setHeader("Content-Type", type);
  response.end(text);
}

/**
 * Answers what Node's parser refused as HTTP; without this, Node would close the connection without a body.
 *
 * @param isBusy whether a request of this connection is being answered: the caller would mistake ours for that answer
 */
export function answerClientError(error: NodeJS.ErrnoException, socket: Duplex, isBusy: boolean): void {
  if (error.code === "ECONNRESET" || !socket.writable || isBusy) {
    socket.destroy();
    return;
  }
  const id = randomUUID();
  const body = JSON.stringify(makeProblem("bad_request", id));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: ${PROBLEM_CONTENT_TYPE}\r\n${REQUEST_ID_HEADER}: ${id}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

import type { ErrorCode } from "@adrelay/contract";
import { parse as parseContentType } from "content-type";
import express, { type Request, type Response } from "express";

export type JsonObject = Record<string, unknown>;

export type BodyResult =
  | { readonly kind: "ok"; readonly bytes: Buffer; readonly text: string; readonly value: JsonObject }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly detail: string };

/** Reads a request's whole body, decompressed, so that `parseJsonObject` finds it. */
export type ReadBody = (request: Request, response: Response) => Promise<void>;

/** A body whose caller hung up before its end; `answerErrors` reads the status. */
class BodyCutOffError extends Error {
  override readonly name = "BodyCutOffError";
  readonly status = 400;
}

/** Bodies larger than the limit, cut off or badly compressed reject; `answerErrors` knows what to answer. */
export function makeReadBody(limitBytes: number): ReadBody {
  const read = express.raw({ type: () => true, limit: limitBytes });
  return (request, response) =>
    new Promise((resolve, reject) => {
      if (isPlain(request, limitBytes)) {
        readPlain(request, resolve, reject);
      } else {
        void read(request, response, (error: unknown) => (error === undefined ? resolve() : reject(error)));
      }
    });
}

/** Whether a body comes as it is and tells its length, as almost all do. */
function isPlain({ headers }: Request, limitBytes: number): boolean {
  return headers["content-encoding"] === undefined && Number(headers["content-length"]) <= limitBytes;
}

/** By hand: Node's parser sees to it that such a body has its length, so that it can only be cut off. */
function readPlain(request: Request, resolve: () => void, reject: (error: Error) => void): void {
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
}

/** Refuses a body that isn't declared as JSON in UTF-8, before it is read. */
export function refusedMediaType(contentType: string | undefined): string | undefined {
  if (contentType === "application/json") {
    return undefined;
  }
  if (contentType === undefined) {
    return "Content-Type is missing; send application/json";
  }
  const { type, parameters } = parseContentType(contentType);
  if (!/^application\/([\w.-]+\+)?json$/.test(type)) {
    return "Content-Type must be application/json";
  }
  const charset = parameters?.["charset"]?.toLowerCase() ?? "utf-8";
  return charset === "utf-8" || charset === "utf8" ? undefined : "the charset of JSON is UTF-8";
}

const UTF8 = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** Parses a body that `readBody` has read; `bytes` and `text` are exactly what was sent. */
export function parseJsonObject(request: Request): BodyResult {
  const body: unknown = request.body;
  if (!Buffer.isBuffer(body) || body.length === 0) {
    return { kind: "refused", code: "invalid_json", detail: "the body is empty" };
  }
  try {
    const text = UTF8.decode(body);
    const value: unknown = JSON.parse(text);
    return isObject(value)
      ? { kind: "ok", bytes: body, text, value }
      : { kind: "refused", code: "validation_failed", detail: "the body must be a JSON object" };
  } catch {
    // The parser's message quotes the text, which is the user's: it stays out of the answer.
    return { kind: "refused", code: "invalid_json", detail: "the body is not valid JSON in UTF-8" };
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

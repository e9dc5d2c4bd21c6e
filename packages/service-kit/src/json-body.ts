import type { ErrorCode } from "@adrelay/contract";
import { parse as parseContentType } from "content-type";
import express, { type Request, type Response } from "express";
import { isPlainBody, readPlainBody } from "./express/hand-written-io.ts";

/** A JSON object whose members are not checked yet. */
export type JsonObject = Record<string, unknown>;

/** A body as JSON, or the code and text of the answer that refuses it. */
export type BodyResult =
  | { readonly kind: "ok"; readonly bytes: Buffer; readonly text: string; readonly value: JsonObject }
  | { readonly kind: "refused"; readonly code: ErrorCode; readonly detail: string };

/** Reads a request's whole body, decompressed, so that `parseJsonObject` finds it. */
export type ReadBody = (request: Request, response: Response) => Promise<void>;

/**
 * Makes a reader of bodies. It rejects if a body is longer than the limit, is cut off or can't be decompressed;
 * `answerErrors` turns these errors into answers.
 */
export function makeReadBody(bytesMax: number): ReadBody {
  const readAnyBody = express.raw({ type: () => true, limit: bytesMax });
  return (request, response) =>
    isPlainBody(request, bytesMax)
      ? readPlainBody(request)
      : new Promise((resolve, reject) => {
          void readAnyBody(request, response, (error: unknown) =>
            error === undefined ? resolve() : reject(error),
          );
        });
}

/** Says why a Content-Type is refused, before the body is read; undefined if it declares JSON in UTF-8. */
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
    // The parser's message is not in the answer, because it quotes the user's text.
    return { kind: "refused", code: "invalid_json", detail: "the body is not valid JSON in UTF-8" };
  }
}

function isObject(value: unknown): value is JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

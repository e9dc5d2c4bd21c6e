/** Serves a listener's OpenAPI document. */
import { readFileSync } from "node:fs";
import type { RequestHandler } from "express";

/** Path of a listener's document. It needs no key or token. */
export const API_DOCUMENT_PATH = "/openapi.json";

/** The committed documents. They are part of the image too. */
const FOLDER = new URL("../../../docs/openapi/", import.meta.url);

/** Reads a committed document now, and sends it on each request. It changes only with the version. */
export function serveApiDocument(name: "public" | "admin" | "ad-server"): RequestHandler {
  const document = readFileSync(new URL(`${name}.json`, FOLDER));
  return (_request, response) => {
    response.set("Cache-Control", "public, max-age=3600");
    response.type("application/json").send(document);
  };
}

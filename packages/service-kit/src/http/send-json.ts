import type { Response } from "express";

/** Sends a JSON text; what Express' own methods look up on the way (escapes, ETags, freshness) we have none of. */
export function sendJson(response: Response, status: number, text: string | Buffer, type = JSON_TYPE): void {
  response.statusCode = status;
  response.setHeader("Content-Type", type);
  response.end(text);
}

const JSON_TYPE = "application/json; charset=utf-8";

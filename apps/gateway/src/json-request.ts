import {
  headerOf,
  type JsonObject,
  parseJsonObject,
  type ReadBody,
  refusedMediaType,
  sendProblem,
} from "@adrelay/service-kit";
import type { Request, Response } from "express";

/** A request's body that is a JSON object: as it came, and parsed. */
export interface JsonBody {
  readonly bytes: Buffer;
  readonly text: string;
  readonly value: JsonObject;
}

/** Reads a JSON body, its media type first; undefined if the refusal has been sent. */
export async function readJson(
  readBody: ReadBody,
  request: Request,
  response: Response,
): Promise<JsonBody | undefined> {
  const refusedType = refusedMediaType(headerOf(request, "content-type"));
  if (refusedType !== undefined) {
    sendProblem(response, "unsupported_media_type", { detail: refusedType });
    return undefined;
  }
  await readBody(request, response);
  const body = parseJsonObject(request);
  if (body.kind === "refused") {
    sendProblem(response, body.code, { detail: body.detail });
    return undefined;
  }
  return { bytes: body.bytes, text: body.text, value: body.value };
}

/** What all operations of the public listener do first: the key, the media type, the body. */
import type { Publisher } from "@adrelay/provider";
import {
  addToRequestLog,
  headerOf,
  type JsonObject,
  parseJsonObject,
  type ReadBody,
  refusedMediaType,
  sendProblem,
} from "@adrelay/service-kit";
import type { Request, RequestHandler, Response } from "express";
import type { Authenticate } from "./auth.ts";

/** Names of operations in metrics and log lines; everything else is `other`. */
export type OperationName = "start_injection" | "acknowledge" | "look_up";

export interface EndpointDeps {
  readonly authenticate: Authenticate;
  /** Where a key may be sent, for the answer to a call without one. */
  readonly keyHeaders: readonly string[];
  readonly readBody: ReadBody;
}

/** A call with a valid key. */
export interface Call {
  readonly publisher: Publisher;
  readonly request: Request;
  readonly response: Response;
}

/** A request's body that is a JSON object: as bytes, as text, and parsed. */
export interface JsonBody {
  readonly bytes: Buffer;
  readonly text: string;
  readonly value: JsonObject;
}

/** A call with a valid key whose body is a JSON object. */
export interface JsonCall extends Call, JsonBody {}

/** An operation without a body: the key, then the handler. */
export function makeEndpoint(
  deps: EndpointDeps,
  name: OperationName,
  handle: (call: Call) => Promise<void>,
): RequestHandler {
  return async (request, response) => {
    const publisher = admit(deps, name, { request, response });
    if (publisher !== undefined) {
      await handle({ publisher, request, response });
    }
  };
}

/** An operation with a JSON body: the key and the media type before the body is read, then the handler. */
export function makeJsonEndpoint(
  deps: EndpointDeps,
  name: OperationName,
  handle: (call: JsonCall) => Promise<void>,
): RequestHandler {
  return makeEndpoint(deps, name, async ({ publisher, request, response }) => {
    const body = await readJson(deps.readBody, request, response);
    if (body !== undefined) {
      const { bytes, text, value } = body;
      await handle({ publisher, request, response, bytes, text, value });
    }
  });
}

function admit(
  { authenticate, keyHeaders }: EndpointDeps,
  operation: OperationName,
  { request, response }: { request: Request; response: Response },
): Publisher | undefined {
  addToRequestLog(response, { operation });
  const publisher = authenticate(request);
  if (publisher === undefined) {
    sendProblem(response, "unauthenticated", { detail: `send a valid key in ${keyHeaders.join(" or ")}` });
    return undefined;
  }
  addToRequestLog(response, { publisher: publisher.id });
  return publisher;
}

/** Reads a JSON body, after a check of its media type; undefined if a refusal was sent. */
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

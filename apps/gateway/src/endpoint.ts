import type { Publisher } from "@adrelay/provider";
import { addToRequestLog, type ReadBody, sendProblem } from "@adrelay/service-kit";
import type { Request, RequestHandler, Response } from "express";
import type { Authenticate } from "./auth/authenticate.ts";
import { type JsonBody, readJson } from "./json-request.ts";

/** Names of operations in metrics and log lines; everything else is `other`. */
export type OperationName = "start_injection" | "acknowledge" | "look_up";

export interface EndpointDeps {
  readonly authenticate: Authenticate;
  /** Where a key may be sent; for the answer to a call without one. */
  readonly keyHeaders: readonly string[];
  readonly readBody: ReadBody;
}

/** A call whose key is good. */
export interface Call {
  readonly publisher: Publisher;
  readonly request: Request;
  readonly response: Response;
}

/** A call whose body is a JSON object, too. */
export interface JsonCall extends Call, JsonBody {}

/** An operation without a body: key, then the handler. */
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

/** An operation with a JSON body: key and media type before the body is read, then its form. */
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

import { duplicateKeys, faultsOf } from "@adrelay/contract";
import {
  addToRequestLog,
  makeReadBody,
  parseJsonObject,
  refusedMediaType,
  sendProblem,
} from "@adrelay/service-kit";
import type { Request, RequestHandler, Response } from "express";
import type { z } from "zod";
import type { ApiKeys } from "../api-keys.ts";
import type { FaultInjector } from "../faults/fault-injector.ts";
import type { FaultOperation } from "../faults/fault-rules.ts";
import { admitKey, admitRate, type RateDeps } from "./admission.ts";

/** Room for a text of a megabyte in any spelling that JSON allows it. */
export const BODY_BYTES_MAX = 2 * 1024 * 1024;

export interface EndpointDeps extends RateDeps {
  readonly keys: ApiKeys;
  readonly faults: FaultInjector;
}

/** A call whose key and body are good. */
export interface Call<T> {
  readonly publisher: string;
  readonly body: T;
  readonly response: Response;
  readonly startedAtMs: number;
}

export interface Operation<T> {
  readonly name: FaultOperation;
  readonly schema: z.ZodType<T>;
  /** Members of the body that must not stand twice, as `duplicateKeys` names them: parsers differ in which one they take. */
  readonly members: readonly string[];
  handle(call: Call<T>): Promise<void>;
}

const readBody = makeReadBody(BODY_BYTES_MAX);

/** The way of every POST: key, media type, rate, body, faults on purpose, form, and only then the operation. */
export function makeEndpoint<T>(
  { keys, faults, rates }: EndpointDeps,
  operation: Operation<T>,
): RequestHandler {
  return async (request, response) => {
    const startedAtMs = performance.now();
    addToRequestLog(response, { operation: operation.name });
    const publisher = admit(keys, request, response);
    if (
      publisher === undefined ||
      !(await admitRate({ rates }, { operation: operation.name, publisher, response }))
    ) {
      return;
    }
    await readBody(request, response);
    const fault = faults.inject(operation.name, response);
    if (fault !== undefined) {
      addToRequestLog(response, { fault: fault.kind });
      return;
    }
    const body = parseBody(request, response, operation);
    if (body !== undefined) {
      await operation.handle({ publisher, body, response, startedAtMs });
    }
  };
}

/** The publisher of a call whose body is worth reading; otherwise the refusal has been sent. */
function admit(keys: ApiKeys, request: Request, response: Response): string | undefined {
  const publisher = admitKey(keys, request, response);
  if (publisher === undefined) {
    return undefined;
  }
  const refusedType = refusedMediaType(request.get("Content-Type"));
  if (refusedType !== undefined) {
    sendProblem(response, "unsupported_media_type", { detail: refusedType });
    return undefined;
  }
  return publisher;
}

/** The body in its required form; otherwise the refusal has been sent. */
function parseBody<T>(
  request: Request,
  response: Response,
  { schema, members }: Operation<T>,
): T | undefined {
  const body = parseJsonObject(request);
  if (body.kind === "refused") {
    sendProblem(response, body.code, { detail: body.detail });
    return undefined;
  }
  const repeated = duplicateKeys(body.text, members);
  if (repeated.length > 0) {
    const errors = repeated.map((path) => ({ path, message: "must stand once" }));
    sendProblem(response, "validation_failed", { errors });
    return undefined;
  }
  const parsed = schema.safeParse(body.value);
  if (!parsed.success) {
    sendProblem(response, "validation_failed", { errors: faultsOf(parsed.error) });
    return undefined;
  }
  return parsed.data;
}

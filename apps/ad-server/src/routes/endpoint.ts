import { API_KEY_HEADER, duplicateKeys, faultsOf } from "@adrelay/contract";
import {
  addToRequestLog,
  parseJsonObject,
  type ReadBody,
  refusedMediaType,
  sendProblem,
} from "@adrelay/service-kit";
import type { Request, RequestHandler, Response } from "express";
import type { z } from "zod";
import type { ApiKeys, RateLimits } from "../access.ts";
import type { CallsInFlight } from "../calls-in-flight.ts";
import type { FaultInjector } from "../faults/fault-injector.ts";
import type { FaultOperation } from "../faults/fault-rules.ts";

export interface EndpointDeps {
  readonly keys: ApiKeys;
  readonly calls: CallsInFlight;
  readonly rates: RateLimits;
  readonly faults: FaultInjector;
  readonly readBody: ReadBody;
}

/** A call with a good key and a valid body. */
export interface Call<T> {
  readonly publisher: string;
  readonly body: T;
  /** The body before the schema read it. */
  readonly sent: unknown;
  readonly response: Response;
  readonly startedAtMs: number;
}

export interface Operation<T> {
  readonly name: FaultOperation;
  readonly schema: z.ZodType<T>;
  /**
   * Members of the body that must not be repeated, in the notation of `duplicateKeys`: parsers differ in which one
   * they use.
   */
  readonly members: readonly string[];
  handle(call: Call<T>): Promise<void>;
}

/**
 * Handles a POST in this order: key, media type, room, rate limit, body, injected faults, validation, and then the
 * operation.
 */
export function makeEndpoint<T>(
  { keys, calls, faults, rates, readBody }: EndpointDeps,
  operation: Operation<T>,
): RequestHandler {
  return async (request, response) => {
    const startedAtMs = performance.now();
    addToRequestLog(response, { operation: operation.name });
    const publisher = admitCaller(keys, request, response);
    if (
      publisher === undefined ||
      !admitCall(calls, publisher, response) ||
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
      await operation.handle({ publisher, ...body, response, startedAtMs });
    }
  };
}

/** The publisher of a call with a good key and media type. If undefined, the refusal has been sent. */
function admitCaller(keys: ApiKeys, request: Request, response: Response): string | undefined {
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

/** Whether there is room for a call, which then ends with its answer. If false, the refusal has been sent. */
function admitCall(calls: CallsInFlight, publisher: string, response: Response): boolean {
  if (response.isSurplus !== true && calls.begin(publisher)) {
    response.once("close", () => calls.end(publisher));
    return true;
  }
  const limit = response.isSurplus === true ? "connections" : "calls";
  addToRequestLog(response, { reason: `no room: ${limit}` });
  response.set("Retry-After", String(RETRY_AFTER_S));
  sendProblem(response, "overloaded", { extensions: { limit } });
  return false;
}

/** The validated body, also as it was sent. If undefined, the refusal has been sent. */
function parseBody<T>(
  request: Request,
  response: Response,
  { schema, members }: Operation<T>,
): Pick<Call<T>, "body" | "sent"> | undefined {
  const body = parseJsonObject(request);
  if (body.kind === "refused") {
    sendProblem(response, body.code, { detail: body.detail });
    return undefined;
  }
  const repeated = duplicateKeys(body.text, members);
  if (repeated.length > 0) {
    const errors = repeated.map((path) => ({ path, message: "must not be repeated" }));
    sendProblem(response, "validation_failed", { errors });
    return undefined;
  }
  const parsed = schema.safeParse(body.value);
  if (!parsed.success) {
    sendProblem(response, "validation_failed", { errors: faultsOf(parsed.error) });
    return undefined;
  }
  return { body: parsed.data, sent: body.value };
}

/** The publisher of a call with a good key. If undefined, the refusal has been sent. */
export function admitKey(keys: ApiKeys, request: Request, response: Response): string | undefined {
  const status = keys.statusOf(request.get(API_KEY_HEADER));
  switch (status.kind) {
    case "good":
      return status.publisher;
    case "revoked":
      sendProblem(response, "key_revoked");
      return undefined;
    case "unknown":
      sendProblem(response, "unauthenticated");
      return undefined;
    default:
      return status satisfies never;
  }
}

/** Whether a publisher's call is within its rate limit. If false, the refusal has been sent. */
async function admitRate(
  { rates }: Pick<EndpointDeps, "rates">,
  call: { readonly operation: FaultOperation; readonly publisher: string; readonly response: Response },
): Promise<boolean> {
  const decision = await rates.admit(call.operation, call.publisher);
  switch (decision.kind) {
    case "admitted":
      return true;
    case "limited":
      call.response.set("Retry-After", String(decision.retryAfterS));
      sendProblem(call.response, "rate_limited");
      return false;
    case "unavailable":
      addToRequestLog(call.response, { reason: decision.reason });
      sendStorageUnavailable(call.response);
      return false;
    default:
      return decision satisfies never;
  }
}

/** Redis is usually back within moments. Callers that retry acknowledgments have longer schedules of their own. */
const RETRY_AFTER_S = 1;

/** Answers that Redis can't be reached. Nothing is promised, and the caller should try again. */
export function sendStorageUnavailable(response: Response): void {
  response.set("Retry-After", String(RETRY_AFTER_S));
  sendProblem(response, "storage_unavailable");
}

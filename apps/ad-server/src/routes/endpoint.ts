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
import type { CallInFlight, CallsInFlight } from "../calls-in-flight.ts";
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
 * Handles a POST in this order: key, media type, room, rate limit, body and room for it, injected faults, validation, and then
 * the operation.
 */
export function makeEndpoint<T>(
  { keys, calls, faults, rates, readBody }: EndpointDeps,
  operation: Operation<T>,
): RequestHandler {
  return async (request, response) => {
    const startedAtMs = performance.now();
    addToRequestLog(response, { operation: operation.name });
    const publisher = admitCaller(keys, request, response);
    const call = publisher === undefined ? undefined : admitCall(calls, publisher, response);
    if (
      publisher === undefined ||
      call === undefined ||
      !(await admitRate({ rates }, { operation: operation.name, publisher, response })) ||
      !(await holdBody({ readBody }, call, { request, response }))
    ) {
      return;
    }
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

/** A call, which ends with its answer. If undefined, there is no room for it, and the refusal has been sent. */
function admitCall(calls: CallsInFlight, publisher: string, response: Response): CallInFlight | undefined {
  const call = response.isSurplus === true ? undefined : calls.begin(publisher);
  if (call === undefined) {
    sendOverloaded(response, response.isSurplus === true ? "connections" : "calls");
  }
  response.once("close", () => call?.end());
  return call;
}

/** Of a body: first its bytes, with their text, and then the values that are parsed from them. */
const COPIES = 2;

/** Reads the body of a call, which holds it until its end. If false, there is no room for it, and the refusal has been sent. */
async function holdBody(
  { readBody }: Pick<EndpointDeps, "readBody">,
  call: CallInFlight,
  { request, response }: { readonly request: Request; readonly response: Response },
): Promise<boolean> {
  const result = await readBody(request, response, (bytes) => call.hold(bytes));
  const { body } = request;
  if (result === "read" && call.hold((COPIES - 1) * (Buffer.isBuffer(body) ? body.length : 0))) {
    return true;
  }
  request.body = undefined;
  sendOverloaded(response, "bytes");
  return false;
}

function sendOverloaded(response: Response, limit: "bytes" | "calls" | "connections"): void {
  addToRequestLog(response, { reason: `no room: ${limit}` });
  response.set("Retry-After", String(RETRY_AFTER_S));
  sendProblem(response, "overloaded", { extensions: { limit } });
}

/** The validated body, also as it was sent. If undefined, the refusal has been sent. */
function parseBody<T>(
  request: Request,
  response: Response,
  { schema, members }: Operation<T>,
): Pick<Call<T>, "body" | "sent"> | undefined {
  const body = parseJsonObject(request);
  request.body = undefined;
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

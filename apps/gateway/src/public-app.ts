/** The public listener: what all of its operations do first (key, media type, body), and how each request is reported. */
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, INJECTION_PATH } from "@adrelay/contract";
import type { Publisher } from "@adrelay/provider";
import {
  type Admission,
  type Authenticate,
  type CountOverload,
  type Holding,
  nameOfRefusal,
  type OperationName,
  type Refusal,
} from "@adrelay/relay-kit";
import {
  API_DOCUMENT_PATH,
  addToRequestLog,
  answerErrors,
  createApp,
  exemplarOf,
  type FinishedRequest,
  type JsonBody,
  methodNotAllowed,
  notFound,
  type ReadBody,
  type RequestLogFields,
  readJson,
  requestContextOf,
  requestSpanOf,
  type Span,
  sendProblem,
  serveApiDocument,
  type Tracing,
} from "@adrelay/service-kit";
import type { Express, Request, RequestHandler, Response } from "express";
import type { Logger } from "pino";
import type { GatewayMetrics } from "./gateway-metrics.ts";
import { sendRefusal } from "./quota-answers.ts";

/** An admitted call with a valid key. */
export interface Call {
  readonly publisher: Publisher;
  readonly request: Request;
  readonly response: Response;
  readonly holding: Holding;
}

/**
 * An admitted call whose body is a JSON object. A handler of it must not be an async function, nor capture it: the body
 * would stay in memory for as long as the handler waits.
 */
export interface JsonCall extends Call, JsonBody {}

/**
 * How many copies of an acknowledgment's body there are while it is queued: its text, the text of its member, the job, and
 * what is written to Redis.
 */
const ACKNOWLEDGE_COPIES = 4;

interface EndpointDeps {
  readonly authenticate: Authenticate;
  /** Where a key may be sent, for the answer to a call without one. */
  readonly keyHeaders: readonly string[];
  readonly readBody: ReadBody;
  /** How many bytes of a body `readBody` reads at most. */
  readonly readBytesMax: number;
  readonly admission: Pick<Admission, "admit">;
  readonly countOverload: CountOverload;
  /** Answers an injection that was not admitted. The chat goes on (invariant 8). */
  readonly refuseInjection: (publisher: Publisher, response: Response, refusal: Refusal) => void;
}

export interface PublicAppDeps extends EndpointDeps {
  readonly startInjection: (call: JsonCall) => Promise<void>;
  readonly acknowledge: (call: JsonCall) => Promise<void>;
  readonly lookUp: (call: Call) => Promise<void>;
  readonly metrics: GatewayMetrics;
  readonly tracing: Tracing;
  readonly log: Logger;
}

const NOT_FOUND_DETAIL =
  `call POST ${INJECTION_PATH}, POST ${ACKNOWLEDGE_PATH} or GET ${ACKNOWLEDGMENTS_PATH}{ad_response_id}/, ` +
  "in lower case and without escapes in the path";

/** The public listener's app. Express serves each path with and without its last slash. */
export function createPublicApp(deps: PublicAppDeps): Express {
  const app = createApp((finished) => reportRequest(deps, finished), deps.tracing);
  app
    .route(INJECTION_PATH)
    .post(makeJsonEndpoint(deps, { name: "start_injection", copies: 1 }, deps.startInjection))
    .all(methodNotAllowed("POST"));
  app
    .route(ACKNOWLEDGE_PATH)
    .post(makeJsonEndpoint(deps, { name: "acknowledge", copies: ACKNOWLEDGE_COPIES }, deps.acknowledge))
    .all(methodNotAllowed("POST"));
  app
    .route(`${ACKNOWLEDGMENTS_PATH}:ad_response_id`)
    .get(makeEndpoint(deps, { name: "look_up", copies: 0 }, deps.lookUp))
    .all(methodNotAllowed("GET", "HEAD"));
  app.route(API_DOCUMENT_PATH).get(serveApiDocument("public")).all(methodNotAllowed("GET", "HEAD"));
  app.use(notFound(NOT_FOUND_DETAIL));
  app.use(answerErrors(deps.log));
  return app;
}

interface Operation {
  readonly name: OperationName;
  /** How many copies of its body there are while it is handled. */
  readonly copies: number;
}

/** An operation without a body: the key, the limits, then the handler. */
function makeEndpoint(
  deps: EndpointDeps,
  operation: Operation,
  handle: (call: Call) => Promise<void>,
): RequestHandler {
  const { name, copies } = operation;
  return (request, response) => {
    const publisher = identify(deps, name, { request, response });
    if (publisher === undefined) {
      return undefined;
    }
    if (response.isSurplus === true) {
      deps.countOverload("connections");
      refuse(deps, name, { publisher, response, refusal: { kind: "overloaded", limit: "connections" } });
      return undefined;
    }
    const bodyBytes = copies === 0 ? 0 : announcedLength(request, deps.readBytesMax);
    const announcedBytes = copies * bodyBytes;
    const admitted = deps.admission.admit(publisher, { operation: name, announcedBytes, bodyBytes });
    if (admitted.kind !== "admitted") {
      refuse(deps, name, { publisher, response, refusal: admitted });
      return undefined;
    }
    const { holding } = admitted;
    response.on("close", () => {
      // If the caller has hung up, what goes on without it takes over first.
      response.writableFinished ? holding.end() : setImmediate(() => holding.end());
    });
    return handle({ publisher, request, response, holding });
  };
}

/**
 * The length of a body as its headers announce it, but never more than is read: whoever announces more gets 413. A body of unknown
 * length has at least one byte, so it isn't read while its publisher has none left.
 */
function announcedLength({ headers }: Request, readBytesMax: number): number {
  if (headers["transfer-encoding"] !== undefined) {
    return 1;
  }
  return Math.min(Number(headers["content-length"]) || 0, readBytesMax);
}

/** An operation with a JSON body: the key, the limits and the media type before the body is read, then the handler. */
function makeJsonEndpoint(
  deps: EndpointDeps,
  operation: Operation,
  handle: (call: JsonCall) => Promise<void>,
): RequestHandler {
  const { name, copies } = operation;
  return makeEndpoint(deps, operation, ({ publisher, request, response, holding }) =>
    holding
      .whileReading(
        readJson(chargedBody(deps, holding), request, response, (bytes) => holding.holdBody(bytes)),
      )
      .then((body) => {
        const hasRoom = body !== undefined && holding.holdBody((copies - 1) * body.bytes.length);
        if (hasRoom) {
          return handle({ publisher, request, response, holding, ...body });
        }
        if (holding.refusal !== undefined) {
          refuse(deps, name, { publisher, response, refusal: holding.refusal });
        }
        return undefined;
      }),
  );
}

/**
 * Reads a body, and drops it if its publisher sends too many bytes a second: what costs time comes after the reading. What was read
 * of a body that can't be used is charged as well.
 */
function chargedBody({ readBody }: EndpointDeps, holding: Holding): ReadBody {
  return async (request, response, hold) => {
    let refusal: Refusal | undefined;
    const result = await readBody(request, response, hold, (bytes) => {
      refusal = holding.chargeBody(bytes);
    });
    if (result === "not_held" || refusal === undefined) {
      return result;
    }
    request.body = undefined;
    holding.refuse(refusal);
    return "not_held";
  };
}

function refuse(
  { refuseInjection }: EndpointDeps,
  name: OperationName,
  { publisher, response, refusal }: { publisher: Publisher; response: Response; refusal: Refusal },
): void {
  addToRequestLog(response, { refused_by: nameOfRefusal(refusal) });
  if (name === "start_injection") {
    refuseInjection(publisher, response, refusal);
  } else {
    sendRefusal(response, refusal);
  }
}

/** The publisher of a call with a valid key; undefined if a refusal was sent. */
function identify(
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

/** Writes a request's one log line, observes its duration and describes its span. */
function reportRequest({ metrics, log }: PublicAppDeps, finished: FinishedRequest): void {
  const { method, requestId, status, durationMs, response } = finished;
  const fields = requestContextOf(response).logFields;
  const operation = String(fields["operation"] ?? "other");
  const span = requestSpanOf(response);
  describeSpan(span, operation, fields);
  metrics.requestDuration.observe({
    labels: { operation, status: String(status) },
    value: durationMs / 1000,
    exemplarLabels: exemplarOf(span),
  });
  if (typeof fields["publisher"] === "string") {
    metrics.countCall(fields["publisher"], status);
  }
  // A warning is written at once: of an untracked injection nothing else is left, should this process be killed.
  log[fields["untracked"] === true ? "warn" : "info"]({
    event: "request",
    ...fields,
    operation,
    method,
    status,
    duration_ms: Math.round(durationMs * 100) / 100,
    request_id: requestId,
    trace_id: span.context?.traceId,
  });
}

function describeSpan(
  span: Span,
  operation: string,
  { publisher, outcome, ad_response_id }: RequestLogFields,
): void {
  span.set({
    "adrelay.operation": operation,
    "adrelay.publisher": singleValue(publisher),
    "adrelay.outcome": singleValue(outcome),
    "adrelay.ad_response_id": singleValue(ad_response_id),
  });
}

function singleValue(field: RequestLogFields[string] | undefined): string | number | undefined {
  return typeof field === "object" || typeof field === "boolean" ? undefined : field;
}

/** A listener and its Express app: what every HTTP service of ours does for each request. */
import { randomUUID } from "node:crypto";
import { createServer, type Server } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  makeProblem,
  PROBLEM_CONTENT_TYPE,
  parseTraceContext,
  REQUEST_ID_HEADER,
  TRACEPARENT_HEADER,
  TRACESTATE_HEADER,
} from "@adrelay/contract";
import express, {
  type Express as ExpressApp,
  type Request,
  type RequestHandler,
  type Response,
} from "express";
import { messageClassesOf } from "./express/message-classes.ts";
import { CannotStartError } from "./lifecycle.ts";
import { NO_SPAN, NO_TRACING, type Span, type Tracing } from "./tracing.ts";

/** Fields of a request's one log line. No user's text may be in them (invariant 6). */
export type RequestLogFields = Readonly<Record<string, string | number | readonly string[]>>;

/**
 * What is kept of a request until its log line is written. It is kept on the response, because a map beside the responses
 * would be work for the garbage collector.
 */
export interface RequestContext {
  /** Empty until the request has been given one. */
  readonly requestId: string;
  readonly span: Span;
  readonly logFields: RequestLogFields;
}

interface MutableContext extends RequestContext {
  requestId: string;
  span: Span;
  readonly logFields: Record<string, RequestLogFields[string]>;
}

declare global {
  namespace Express {
    interface Response {
      requestContext?: MutableContext;
    }
  }
}

/** The context of the request that this response answers. */
export function requestContextOf(response: Response): RequestContext {
  return contextOf(response);
}

/** The id of the request that this response answers; empty if it has none. */
export function requestIdOf(response: Response): string {
  return contextOf(response).requestId;
}

/** The span of the request that this response answers; one that records nothing if none was opened. */
export function requestSpanOf(response: Response): Span {
  return contextOf(response).span;
}

/** Adds fields to the one log line of a request. */
export function addToRequestLog(response: Response, fields: RequestLogFields): void {
  Object.assign(contextOf(response).logFields, fields);
}

/** Gives a request its id, and its span within the trace that its caller names. The caller of this ends the span. */
function openRequestContext(request: Request, response: Response, tracing: Tracing): RequestContext {
  const context = contextOf(response);
  giveRequestId(request, response);
  context.span = tracing.startSpan({
    name: request.method,
    kind: "server",
    parent: parseTraceContext(headerOf(request, TRACEPARENT_HEADER), headerOf(request, TRACESTATE_HEADER)),
    attributes: { "http.request.method": request.method },
  });
  return context;
}

/** Gives each request an id, for an app without spans and request logs. */
export const assignRequestId: RequestHandler = (request, response, next) => {
  giveRequestId(request, response);
  next();
};

const ID_HEADER = REQUEST_ID_HEADER.toLowerCase();
const PLAIN_ID = /^[\w.:-]{1,128}$/;

/**
 * Uses the caller's id if it is a plain one, else makes one. Every answer carries it. A request that has an id keeps
 * it.
 */
function giveRequestId(request: Request, response: Response): void {
  const context = contextOf(response);
  if (context.requestId === "") {
    const given = headerOf(request, ID_HEADER);
    context.requestId = given !== undefined && PLAIN_ID.test(given) ? given : randomUUID();
    response.setHeader(REQUEST_ID_HEADER, context.requestId);
  }
}

function contextOf(response: Response): MutableContext {
  response.requestContext ??= { requestId: "", span: NO_SPAN, logFields: {} };
  return response.requestContext;
}

/** A header's first value. The name must be in lower case; Express' own `get` converts it at each call. */
export function headerOf({ headers }: Request, name: string): string | undefined {
  const value = headers[name];
  return typeof value === "object" ? value[0] : value;
}

/** What is known of a request once its answer is sent or its caller has hung up. */
export interface FinishedRequest {
  readonly method: string;
  readonly requestId: string;
  /** The status of the answer; 499 if the caller hung up before it had one. */
  readonly status: number;
  readonly durationMs: number;
  readonly response: Response;
}

const CALLER_GONE_STATUS = 499;

/**
 * Makes an Express app with case-sensitive paths and without headers that name Express. Each request gets an id and a
 * span, and is reported once, when it has finished.
 */
export function createApp(
  onFinished: (finished: FinishedRequest) => void,
  tracing: Tracing = NO_TRACING,
): ExpressApp {
  const app = express();
  app.disable("x-powered-by");
  app.disable("etag");
  app.enable("case sensitive routing");
  // One layer for everything, because each layer costs the router time.
  app.use((request: Request, response: Response, next) => {
    const startedAtMs = performance.now();
    const { requestId, span } = openRequestContext(request, response, tracing);
    response.on("close", () => {
      const status = response.writableFinished ? response.statusCode : CALLER_GONE_STATUS;
      const durationMs = performance.now() - startedAtMs;
      onFinished({ method: request.method, requestId, status, durationMs, response });
      span.set({ "http.response.status_code": status, "adrelay.request_id": requestId });
      span.end({ isFault: status >= 500 });
    });
    next();
  });
  return app;
}

/** A listener could not be opened. The message names it and its address. */
class ListenError extends CannotStartError {
  override readonly name = "ListenError";
}

/** Where a listener listens. */
export interface ListenOptions {
  /** The listener's name in messages: `the gateway`, `the gateway's ops listener`. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

/** How long a client may take to send a request's headers, and the whole request. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than the idle time limit of common proxies, so that they close first and send no request to a closing socket. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;
const IDLE_SWEEP_MS = 50;

/** An HTTP listener for an Express app. */
export class HttpServer {
  readonly #server: Server;
  readonly #options: ListenOptions;
  /** Sockets on which a request is being answered. */
  readonly #busy = new WeakSet<object>();
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(app: ExpressApp, options: ListenOptions) {
    this.#options = options;
    this.#server = createServer(
      {
        headersTimeout: HEADERS_TIMEOUT_MS,
        requestTimeout: REQUEST_TIMEOUT_MS,
        keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
        ...messageClassesOf(app),
      },
      app,
    );
    this.#watchRequests(this.#server);
  }

  /** The port it listens on. If 0 was asked for, the operating system has chosen it. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : this.#options.port;
  }

  /** Listens, or rejects with a CannotStartError that says where and why. */
  start(): Promise<void> {
    this.#starting ??= this.#stopping === undefined ? this.#listen() : Promise.resolve();
    return this.#starting;
  }

  /**
   * Accepts no more connections and waits until the running requests have ended. When the signal fires, the connections
   * that are left are closed.
   */
  stop(signal?: AbortSignal): Promise<void> {
    const closeAll = () => this.#server.closeAllConnections();
    if (signal?.aborted === true) {
      closeAll();
    }
    signal?.addEventListener("abort", closeAll, { once: true });
    this.#stopping ??= this.#close();
    return this.#stopping;
  }

  async #close(): Promise<void> {
    // A close during the start would be lost. If the start fails, there is nothing to close, and that is no fault here.
    await this.#starting?.catch(() => {});
    await new Promise<void>((resolve) => {
      // A keep-alive connection that is busy now becomes idle later, and must not keep the server open.
      const sweep = setInterval(() => this.#server.closeIdleConnections(), IDLE_SWEEP_MS);
      this.#server.close(() => {
        clearInterval(sweep);
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  #watchRequests(server: Server): void {
    server.prependListener("request", ({ socket }: { socket: Socket }, response) => {
      this.#busy.add(socket);
      if (!server.listening) {
        // Otherwise the caller would send its next request on a connection that is about to close.
        response.setHeader("Connection", "close");
      }
      response.on("close", () => this.#busy.delete(socket));
    });
    // An unknown Expect header may be ignored; Node would answer such a request itself, without a body.
    server.on("checkExpectation", (request, response) => server.emit("request", request, response));
    server.on("clientError", (error, socket) => answerClientError(error, socket, this.#busy.has(socket)));
  }

  #listen(): Promise<void> {
    const { name, host, port } = this.#options;
    return new Promise((resolve, reject) => {
      this.#server.once("error", (cause: NodeJS.ErrnoException) => {
        const why = cause.code === "EADDRINUSE" ? "the port is in use" : (cause.code ?? cause.message);
        reject(new ListenError(`${name} can't listen on ${host}:${port}: ${why}`, { cause }));
      });
      this.#server.listen(port, host, resolve);
    });
  }
}

/**
 * Answers what Node's parser refused as HTTP; without this, Node would close the connection without a body.
 *
 * @param isBusy whether a request of this connection is being answered: the caller would mistake ours for that answer
 */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex, isBusy: boolean): void {
  if (error.code === "ECONNRESET" || !socket.writable || isBusy) {
    socket.destroy();
    return;
  }
  const id = randomUUID();
  const body = JSON.stringify(makeProblem("bad_request", id));
  socket.end(
    `HTTP/1.1 400 Bad Request\r\nContent-Type: ${PROBLEM_CONTENT_TYPE}\r\n${REQUEST_ID_HEADER}: ${id}\r\n` +
      `Content-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`,
  );
}

/** Makes an HTTP server and starts it. Rejects with a CannotStartError that says where it can't listen and why. */
export async function startHttpServer(app: ExpressApp, options: ListenOptions): Promise<HttpServer> {
  const server = new HttpServer(app, options);
  await server.start();
  return server;
}

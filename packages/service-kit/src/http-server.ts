/** The listener of an Express app, or of a handler of Node's. */
import { randomUUID } from "node:crypto";
import {
  createServer,
  type IncomingMessage,
  type RequestListener,
  type Server,
  type ServerResponse,
} from "node:http";
import { makeProblem, PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from "@adrelay/contract";
import type { Express as ExpressApp } from "express";
import type { Logger } from "pino";
import { ANSWER_HEADERS } from "./answer-headers.ts";
import { atMostEvery } from "./at-most-every.ts";
import { type ConnectionLimits, Connections } from "./connections.ts";
import { messageClassesOf } from "./express/message-classes.ts";
import { CannotStartError } from "./lifecycle.ts";
import { onAbort } from "./on-abort.ts";

/** A listener could not be opened. The message names it and its address. */
class ListenError extends CannotStartError {
  override readonly name = "ListenError";
}

/** How long a listener waits for its peers. */
interface ListenLimits extends ConnectionLimits {
  /** For a request's headers, from the opening of a connection or the first byte of a later request. */
  readonly headersTimeoutMs: number;
  /** For a whole request. */
  readonly requestTimeoutMs: number;
  /** For the next request on a connection. */
  readonly keepAliveTimeoutMs: number;
}

/** Where a listener listens, and how. */
export interface ListenOptions {
  /** The listener's name in messages: `the gateway`, `the gateway's ops listener`. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
  readonly log: Logger;
  readonly limits?: Partial<ListenLimits>;
  /** Headers of every answer; by default those of our own answers. */
  readonly answerHeaders?: readonly (readonly [name: string, value: string])[];
  /** Called for each connection that is closed at once, because there are too many. */
  onNoRoom?(): void;
  /** True from the announcement of a stop on. Answers then close their connections, so that callers find another process. */
  isStopping?(): boolean;
}

const DEFAULT_LIMITS: ListenLimits = {
  connectionsMax: Number.POSITIVE_INFINITY,
  headersTimeoutMs: 10_000,
  requestTimeoutMs: 60_000,
  keepAliveTimeoutMs: 75_000,
  answerTimeoutMs: 60_000,
  drainTimeoutMs: 1000,
  refusalTimeoutMs: 1000,
};

/** How often limits are checked, at most; short ones are checked more often. */
const CHECK_INTERVAL_MS = 1000;
const DRAIN_CHECK_INTERVAL_MS = 50;
const ACCEPT_REPORT_INTERVAL_MS = 10_000;

/** What answers requests. Without Express, each call costs less. */
type Handler = ExpressApp | RequestListener;

/** An HTTP listener for an Express app, or for a handler of Node's. */
export class HttpServer {
  readonly #server: Server;
  readonly #options: ListenOptions;
  readonly #connections: Connections;
  readonly #checkIntervalMs: number;
  #checks: NodeJS.Timeout | undefined;
  /** Reports that a connection could not be accepted, for example because no descriptor is left. The listener goes on. */
  readonly #reportAcceptError: (err: Error) => void;
  #starting: Promise<void> | undefined;
  #stopping: Promise<void> | undefined;

  constructor(app: Handler, options: ListenOptions) {
    const limits = { ...DEFAULT_LIMITS, ...options.limits };
    this.#options = options;
    const { log, name: listener } = options;
    this.#reportAcceptError = atMostEvery(ACCEPT_REPORT_INTERVAL_MS, (err) => {
      log.warn({ event: "accept_failed", listener, err });
    });
    this.#connections = new Connections(limits, () => options.onNoRoom?.());
    const { connectionsMax, ...timeLimitsMs } = limits;
    this.#checkIntervalMs = Math.min(CHECK_INTERVAL_MS, ...Object.values(timeLimitsMs));
    this.#server = createServer(
      {
        // Node refuses a longer time for the headers than for the whole request.
        headersTimeout: Math.min(limits.headersTimeoutMs, limits.requestTimeoutMs),
        requestTimeout: limits.requestTimeoutMs,
        keepAliveTimeout: limits.keepAliveTimeoutMs,
        connectionsCheckingInterval: this.#checkIntervalMs,
        // Node's own refusal of a request without a Host has no body.
        requireHostHeader: false,
        ...("request" in app ? messageClassesOf(app) : {}),
      },
      (request, response) => this.#handle(app, request, response),
    );
    this.#watch(this.#server);
  }

  /** The port it listens on. If 0 was asked for, the operating system has chosen it. */
  get port(): number {
    const address = this.#server.address();
    return typeof address === "object" && address !== null ? address.port : this.#options.port;
  }

  /** How many connections there are. */
  get connections(): number {
    return this.#connections.count;
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
    onAbort(signal, () => this.#connections.closeAll());
    this.#stopping ??= this.#close();
    return this.#stopping;
  }

  async #close(): Promise<void> {
    // A close during the start would be lost. If the start fails, there is nothing to close, and that is no fault here.
    await this.#starting?.catch(() => {});
    clearInterval(this.#checks);
    this.#connections.drain();
    await new Promise<void>((resolve) => {
      const checks = setInterval(() => {
        // A keep-alive connection that is busy now becomes idle later, and must not keep the server open.
        this.#server.closeIdleConnections();
        this.#connections.closeOverdue(performance.now());
      }, DRAIN_CHECK_INTERVAL_MS);
      this.#server.close(() => {
        clearInterval(checks);
        resolve();
      });
      this.#server.closeIdleConnections();
    });
  }

  #handle(app: Handler, request: IncomingMessage, response: ServerResponse): void {
    if (!this.#connections.addResponse(response)) {
      return;
    }
    for (const [name, value] of this.#options.answerHeaders ?? ANSWER_HEADERS) {
      response.setHeader(name, value);
    }
    if (!this.#server.listening || this.#options.isStopping?.() === true) {
      // Otherwise the caller would send its next request on a connection that is about to close.
      response.setHeader("Connection", "close");
    }
    if (request.headers.host === undefined && request.httpVersion === "1.1") {
      refuseWithoutHost(response);
    } else {
      app(request, response);
    }
  }

  #watch(server: Server): void {
    server.on("connection", (socket) => this.#connections.add(socket));
    // An unknown Expect header may be ignored; Node would answer such a request itself, without a body.
    server.on("checkExpectation", (request, response) => server.emit("request", request, response));
    server.on("clientError", (error, socket) => this.#connections.refuse(error, socket));
  }

  #listen(): Promise<void> {
    const { name, host, port } = this.#options;
    const server = this.#server;
    return new Promise((resolve, reject) => {
      const refuse = (cause: NodeJS.ErrnoException) => {
        const why = cause.code === "EADDRINUSE" ? "the port is in use" : (cause.code ?? cause.message);
        reject(new ListenError(`${name} can't listen on ${host}:${port}: ${why}`, { cause }));
      };
      server.once("error", refuse);
      server.listen(port, host, () => {
        server.off("error", refuse);
        server.on("error", this.#reportAcceptError);
        this.#checks = setInterval(
          () => this.#connections.closeOverdue(performance.now()),
          this.#checkIntervalMs,
        ).unref();
        resolve();
      });
    });
  }
}

/** RFC 9112, section 3.2. */
function refuseWithoutHost(response: ServerResponse): void {
  const problem = makeProblem("bad_request", randomUUID(), { detail: "HTTP/1.1 needs the header Host" });
  response
    .writeHead(problem.status, {
      "Content-Type": PROBLEM_CONTENT_TYPE,
      [REQUEST_ID_HEADER]: problem.request_id,
      Connection: "close",
    })
    .end(JSON.stringify(problem));
}

/** Makes an HTTP server and starts it. Rejects with a CannotStartError that says where it can't listen and why. */
export async function startHttpServer(app: Handler, options: ListenOptions): Promise<HttpServer> {
  const server = new HttpServer(app, options);
  await server.start();
  return server;
}

import { randomUUID } from "node:crypto";
import { createServer, IncomingMessage, type Server, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import { makeProblem, PROBLEM_CONTENT_TYPE, REQUEST_ID_HEADER } from "@adrelay/contract";
import type { Express } from "express";

/** A listener that could not be opened; the message names it and its address. */
export class ListenError extends Error {
  override readonly name = "ListenError";
}

export interface ListenOptions {
  /** How the listener is called in messages: `gateway`, `gateway ops`. */
  readonly name: string;
  readonly host: string;
  readonly port: number;
}

export interface HttpServer {
  /** The port it listens on; the system's choice if 0 was asked for. */
  readonly port: number;
  /** Stops taking connections and lets running requests end; those left at the signal are cut. */
  stop(signal: AbortSignal): Promise<void>;
}

/** Slow clients may take this long to send a request's headers and its whole body. */
const HEADERS_TIMEOUT_MS = 10_000;
const REQUEST_TIMEOUT_MS = 60_000;
/** Longer than the idle limit of common proxies, so that they close first and no request meets a closing socket. */
const KEEP_ALIVE_TIMEOUT_MS = 65_000;

/** Listens, or fails with a ListenError that says where and why. */
export async function startHttpServer(
  app: Express,
  { name, host, port }: ListenOptions,
): Promise<HttpServer> {
  const server = createServer(
    {
      headersTimeout: HEADERS_TIMEOUT_MS,
      requestTimeout: REQUEST_TIMEOUT_MS,
      keepAliveTimeout: KEEP_ALIVE_TIMEOUT_MS,
      ...messagesOf(app),
    },
    app,
  );
  const busy = new WeakSet<Socket>();
  server.prependListener("request", (request, response) => {
    busy.add(request.socket);
    if (!server.listening) {
      // A caller that keeps its connections must not send its next request into one that is about to close.
      response.setHeader("Connection", "close");
    }
    response.on("close", () => busy.delete(request.socket));
  });
  // An expectation that we don't know may be ignored; Node would answer it itself, without a body.
  server.on("checkExpectation", (request, response) => server.emit("request", request, response));
  server.on("clientError", (error, socket) => answerClientError(error, socket, busy));
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause: NodeJS.ErrnoException) => {
      const why = cause.code === "EADDRINUSE" ? "the port is taken" : (cause.code ?? cause.message);
      reject(new ListenError(`${name} can't listen on ${host}:${port}: ${why}`, { cause }));
    });
    server.listen(port, host, resolve);
  });
  const address = server.address();
  return {
    port: typeof address === "object" && address !== null ? address.port : port,
    stop: (signal) => stopServer(server, signal),
  };
}

/**
 * Express puts its own prototypes below each request and response that Node made, and V8 forgets with that what it knew
 * of their form. These are made with them.
 */
function messagesOf(app: Express) {
  class AppRequest extends IncomingMessage {}
  class AppResponse extends ServerResponse {}
  app.request = Object.setPrototypeOf(AppRequest.prototype, app.request);
  app.response = Object.setPrototypeOf(AppResponse.prototype, app.response);
  return { IncomingMessage: AppRequest, ServerResponse: AppResponse };
}

function stopServer(server: Server, signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    server.close(() => resolve());
    server.closeIdleConnections();
    // A keep-alive connection that is busy now goes idle later: it must not hold the server open.
    const sweep = setInterval(() => server.closeIdleConnections(), 50);
    server.once("close", () => clearInterval(sweep));
    signal.addEventListener("abort", () => server.closeAllConnections(), { once: true });
  });
}

/** Answers what isn't HTTP at all: Node would close such a connection without a body. */
function answerClientError(error: NodeJS.ErrnoException, socket: Duplex, busy: WeakSet<object>): void {
  // While a request is being answered the caller would take ours for its answer.
  if (error.code === "ECONNRESET" || !socket.writable || busy.has(socket)) {
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

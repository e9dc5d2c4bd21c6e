/**
 * The open connections of a listener. No peer can keep one for long without doing its part:
 *
 * 1. Node's own time limits end a wait for a request. The peer gets 408, and a moment later its connection is closed,
 *    whether it reads the answer or not. The same goes for what isn't HTTP (400) and for long headers (431).
 * 2. A peer that doesn't read its answer is cut off after `answerTimeoutMs`.
 * 3. During a stop both waits are short: `drainTimeoutMs`.
 * 4. If there are too many, the one that has been without a request for the longest makes room for a new one; first those
 *    that never had one. If all have requests, the new one is surplus: its request should be refused. Of these, too, there
 *    are few.
 * 5. A peer that sends many requests without waiting for their answers (pipelining) loses its connection.
 *
 * A connection on which a handler works is never cut off here, however long that takes: handlers have their own limits.
 */
import { randomUUID } from "node:crypto";
import { type ServerResponse, STATUS_CODES } from "node:http";
import type { Socket } from "node:net";
import type { Duplex } from "node:stream";
import {
  ERROR_CATALOGUE,
  type ErrorCode,
  makeProblem,
  PROBLEM_CONTENT_TYPE,
  REQUEST_ID_HEADER,
} from "@adrelay/contract";
import { ANSWER_HEADERS } from "./answer-headers.ts";
import { stopParsing } from "./stop-parsing.ts";

/** How long a listener waits for its peers. */
export interface ConnectionLimits {
  /** How many connections there may be. */
  readonly connectionsMax: number;
  /** For an answer to be read, from its last byte on. */
  readonly answerTimeoutMs: number;
  /** During a stop: for the rest of a request, and for an answer to be read. */
  readonly drainTimeoutMs: number;
  /** For a peer to read a refusal, before its connection is closed. */
  readonly refusalTimeoutMs: number;
}

/** What a connection waits for its peer to do. */
type PeerTask = "send" | "read";

interface Connection {
  /** The requests that are not answered completely, in the order in which they came. */
  readonly responses: ServerResponse[];
  /** What the last check found it to wait for, and the time of the first check that found this. */
  wait: { readonly task: PeerTask; readonly sinceMs: number } | undefined;
  /** What the peer sent was refused. Nothing more from it is read. */
  isRefused: boolean;
  /** It came when all others had requests. */
  readonly isSurplus: boolean;
  hadRequest: boolean;
  /** When it was opened, or its latest request was answered. */
  lastUsedAtMs: number;
}

/** How many connections may be surplus. */
const SURPLUS_MAX = 100;

/** How many requests of one connection may have no complete answer. */
const UNANSWERED_MAX = 20;

/** How many requests of all connections may wait for the answer to an earlier one of their connection. */
const PIPELINED_MAX = 1000;

export class Connections {
  readonly #limits: ConnectionLimits;
  readonly #open = new Map<Duplex, Connection>();
  readonly #onNoRoom: () => void;
  #isDraining = false;
  #pipelined = 0;

  /** `onNoRoom` is called for each connection that is closed at once, because there is no room for it. */
  constructor(limits: ConnectionLimits, onNoRoom: () => void = () => {}) {
    this.#limits = limits;
    this.#onNoRoom = onNoRoom;
  }

  /** How many there are. */
  get count(): number {
    return this.#open.size;
  }

  add(socket: Socket): void {
    const isSurplus = this.#open.size >= this.#limits.connectionsMax && !this.#closeOneWithoutRequest();
    if (isSurplus && this.#open.size >= this.#limits.connectionsMax + SURPLUS_MAX) {
      this.#onNoRoom();
      socket.destroy();
      return;
    }
    this.#open.set(socket, {
      responses: [],
      wait: undefined,
      isRefused: false,
      isSurplus,
      hadRequest: false,
      lastUsedAtMs: performance.now(),
    });
    socket.once("close", () => this.#open.delete(socket));
  }

  /** False if the request must not be handled: its connection is closed, because it has too many. */
  addResponse(response: ServerResponse): boolean {
    const { socket } = response.req;
    const connection = this.#open.get(socket);
    if (connection === undefined) {
      return !socket.destroyed;
    }
    const { responses } = connection;
    if (responses.length > 0 && !this.#hasRoomBehind(connection)) {
      stopParsing(socket);
      socket.destroy();
    }
    if (socket.destroyed) {
      return false;
    }
    if (connection.isSurplus) {
      markAsSurplus(response);
    }
    this.#pipelined += responses.length > 0 ? 1 : 0;
    responses.push(response);
    // It closes once, so `once` would only cost more.
    response.on("close", () => {
      responses.splice(responses.indexOf(response), 1);
      this.#pipelined -= responses.length > 0 ? 1 : 0;
      connection.hadRequest = true;
      connection.lastUsedAtMs = performance.now();
    });
    return true;
  }

  #hasRoomBehind({ responses }: Connection): boolean {
    return responses.length < UNANSWERED_MAX && this.#pipelined < PIPELINED_MAX;
  }

  /** Answers what Node refused to read, and closes the connection. */
  refuse(error: NodeJS.ErrnoException, socket: Duplex): void {
    const connection = this.#open.get(socket);
    if (connection?.isRefused === true) {
      // Node reports each further piece. It is dropped, because a reset could destroy the answer before the peer has read it.
      return;
    }
    if (connection === undefined || !socket.writable || !isAnswerable(error, connection)) {
      socket.destroy();
      return;
    }
    connection.isRefused = true;
    socket.end(formatRefusal(refusalCodeOf(error)));
    const timer = setTimeout(() => socket.destroy(), this.#limits.refusalTimeoutMs);
    socket.once("close", () => clearTimeout(timer));
  }

  /** From now on the limits of a stop apply. */
  drain(): void {
    this.#isDraining = true;
    for (const connection of this.#open.values()) {
      connection.wait = undefined;
    }
  }

  /** Closes the connections that have waited for their peers for too long. To be called again and again. */
  closeOverdue(nowMs: number): void {
    for (const [socket, connection] of this.#open) {
      const task = peerTaskOf(connection);
      if (task === undefined) {
        connection.wait = undefined;
      } else if (connection.wait?.task !== task) {
        connection.wait = { task, sinceMs: nowMs };
      } else if (nowMs - connection.wait.sinceMs >= this.#limitMsOf(task)) {
        socket.destroy();
      }
    }
  }

  closeAll(): void {
    for (const socket of this.#open.keys()) {
      socket.destroy();
    }
  }

  #closeOneWithoutRequest(): boolean {
    let first: { readonly socket: Duplex; readonly connection: Connection } | undefined;
    for (const [socket, connection] of this.#open) {
      const isWithout = connection.responses.length === 0 && !connection.isRefused;
      if (isWithout && (first === undefined || makesRoomBefore(connection, first.connection))) {
        first = { socket, connection };
      }
    }
    if (first !== undefined) {
      // Now, because it closes only later, and must not make room twice.
      this.#open.delete(first.socket);
      first.socket.destroy();
    }
    return first !== undefined;
  }

  #limitMsOf(task: PeerTask): number {
    const { answerTimeoutMs, drainTimeoutMs } = this.#limits;
    if (this.#isDraining) {
      return drainTimeoutMs;
    }
    // Node limits the wait for a request, and so does the keep-alive time between two of them.
    return task === "read" ? answerTimeoutMs : Number.POSITIVE_INFINITY;
  }
}

function makesRoomBefore(one: Connection, other: Connection): boolean {
  return one.hadRequest === other.hadRequest ? one.lastUsedAtMs < other.lastUsedAtMs : !one.hadRequest;
}

declare global {
  namespace Express {
    interface Response {
      /** Its connection came when all others had requests. */
      isSurplus?: boolean;
    }
  }
}

function markAsSurplus(response: ServerResponse & Express.Response): void {
  response.isSurplus = true;
  response.setHeader("Connection", "close");
}

/** Undefined if the connection waits for a handler of ours. */
function peerTaskOf({ responses: [first] }: Connection): PeerTask | undefined {
  if (first?.writableEnded === true) {
    return "read";
  }
  return first === undefined || !first.req.complete ? "send" : undefined;
}

/**
 * Whether the peer would take an answer for the one to what it sent last: it gets no other answer now, and there is only
 * the request that was refused itself.
 */
function isAnswerable(
  { code }: NodeJS.ErrnoException,
  { responses: [first, ...others] }: Connection,
): boolean {
  const isAlone = first === undefined || (others.length === 0 && !first.headersSent && !first.req.complete);
  return isAlone && code !== "ECONNRESET";
}

function refusalCodeOf({ code }: NodeJS.ErrnoException): ErrorCode {
  switch (code) {
    case "ERR_HTTP_REQUEST_TIMEOUT":
      return "request_timeout";
    case "HPE_HEADER_OVERFLOW":
      return "headers_too_large";
    case "HPE_CHUNK_EXTENSIONS_OVERFLOW":
      return "payload_too_large";
    default:
      return "bad_request";
  }
}

/** A whole answer. There is no response to send it with, because Node has made no request of what came. */
function formatRefusal(code: ErrorCode): string {
  const id = randomUUID();
  const { status } = ERROR_CATALOGUE[code];
  const body = JSON.stringify(makeProblem(code, id));
  const always = ANSWER_HEADERS.map(([name, value]) => `${name}: ${value}\r\n`).join("");
  return (
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\nContent-Type: ${PROBLEM_CONTENT_TYPE}\r\n${always}` +
    `${REQUEST_ID_HEADER}: ${id}\r\nContent-Length: ${Buffer.byteLength(body)}\r\nConnection: close\r\n\r\n${body}`
  );
}

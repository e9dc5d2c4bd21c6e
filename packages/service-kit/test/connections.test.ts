/** Peers that don't do their part: each loses its connection, and gets an answer first where it can read one. */
import { subscribe, unsubscribe } from "node:diagnostics_channel";
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { eventually, pause } from "@adrelay/testkit";
import express from "express";
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import { answerErrors, HttpServer, makeReadBody } from "../src/index.ts";

const LIMITS = {
  headersTimeoutMs: 200,
  requestTimeoutMs: 400,
  keepAliveTimeoutMs: 300,
  answerTimeoutMs: 200,
  drainTimeoutMs: 200,
  refusalTimeoutMs: 200,
};
const LONG_LIMITS = { headersTimeoutMs: 60_000, requestTimeoutMs: 60_000, drainTimeoutMs: 200 };
/** More than the buffers of both ends of a connection hold. */
const LONG_ANSWER = "x".repeat(32 * 1024 * 1024);

const log = pino({ level: "silent" });

interface Watch {
  readonly onNoRoom: () => void;
  /** Whether the connection of each request to /held is surplus. */
  readonly held: boolean[];
}

async function setup(limits: object = LIMITS, { onNoRoom, held }: Watch = { onNoRoom: () => {}, held: [] }) {
  const app = express();
  const readBody = makeReadBody(1_000_000);
  app.get("/", (_request, response) => {
    response.send("ok");
  });
  app.get("/long", (_request, response) => {
    response.send(LONG_ANSWER);
  });
  app.get("/slow", (_request, response) => {
    setTimeout(() => response.send("slow"), 1500);
  });
  app.get("/held", (_request, response) => {
    held.push(response.isSurplus === true);
  });
  app.post("/", async (request, response) => {
    await readBody(request, response);
    response.send("read");
  });
  app.use(answerErrors(log));
  const server = new HttpServer(app, { name: "a test", host: "127.0.0.1", port: 0, log, limits, onNoRoom });
  await server.start();
  onTestFinished(() => server.stop(AbortSignal.abort()));
  return server;
}

/** A peer that never closes: it keeps its own side open even after the server has closed its side. */
async function openSocket({ port }: HttpServer, bytes = "") {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  onTestFinished(() => void socket.destroy());
  const received = { text: "", isEnded: false };
  socket.setEncoding("utf8").on("error", () => {});
  socket.on("end", () => {
    received.isEnded = true;
  });
  socket.on("data", (text) => {
    received.text += text;
  });
  await once(socket, "connect");
  socket.write(bytes);
  return { socket, received };
}

/** Resolves once the server has destroyed a connection, which the next bytes show to its peer. */
async function destroyed(socket: Socket): Promise<void> {
  await eventually(() => {
    socket.write("x");
    expect(socket.destroyed).toBe(true);
  }, 5000);
}

const answerOf = (text: string) => {
  const [head = "", body = ""] = text.split("\r\n\r\n");
  return { head, problem: JSON.parse(body) };
};

const DRIPPED = "POST / HTTP/1.1\r\nHost: h\r\nContent-Length: 1000\r\n\r\n{";

test.each([
  ["no byte", "", 408, "request_timeout"],
  ["half a header", "GET / HTTP/1.1\r\nHost: h\r\nX-Half: ", 408, "request_timeout"],
  ["half a body", DRIPPED, 408, "request_timeout"],
  ["headers that are too long", `GET / HTTP/1.1\r\nX-Long: ${"x".repeat(100_000)}`, 431, "headers_too_large"],
  ["what isn't HTTP", "\u0016\u0003\u0001 not http\r\n\r\n", 400, "bad_request"],
  [
    "a malformed chunk",
    "POST / HTTP/1.1\r\nHost: h\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
    400,
    "bad_request",
  ],
])(
  "a peer that sent %s and never closes is answered and then cut off",
  async (_what, bytes, status, code) => {
    const { socket, received } = await openSocket(await setup(), bytes);
    await eventually(() => expect(received.isEnded).toBe(true), 5000);
    const { head, problem } = answerOf(received.text);
    expect(head).toMatch(new RegExp(`^HTTP/1.1 ${status} [A-Z]`));
    expect(head).toContain("Content-Type: application/problem+json");
    expect(head).toContain("Connection: close");
    expect(problem).toMatchObject({ status, code });
    await destroyed(socket);
  },
);

test("a refused peer that goes on sending still gets its answer", async () => {
  const { socket, received } = await openSocket(await setup(), `GET / HTTP/1.1\r\nX: ${"x".repeat(100_000)}`);
  for (let at = 0; at < 20; at += 1) {
    socket.write("y".repeat(50_000));
  }
  await eventually(() => expect(received.isEnded).toBe(true), 5000);
  expect(answerOf(received.text).problem).toMatchObject({ status: 431 });
});

test("a body that drips is cut off, however steadily it drips", async () => {
  const { socket } = await openSocket(await setup(), DRIPPED);
  const drip = setInterval(() => socket.write(" "), 20);
  onTestFinished(() => clearInterval(drip));
  await eventually(() => expect(socket.destroyed).toBe(true), 5000);
});

test("a client of TLS is cut off", async () => {
  const { port } = await setup();
  const socket = connectTls({ port, host: "127.0.0.1", rejectUnauthorized: false });
  await once(socket, "error");
});

test("a peer that never reads its answer is cut off", async () => {
  const server = await setup();
  const { socket } = await openSocket(server, "GET /long HTTP/1.1\r\nHost: h\r\n\r\n");
  socket.pause();
  const closed = once(socket, "close");
  // It reads again only after its time is up. What it gets then ends early.
  await pause(1000);
  socket.resume();
  await Promise.race([closed, once(socket, "end")]);
  expect(socket.bytesRead).toBeLessThan(LONG_ANSWER.length);
});

test("a slow handler is not cut off", async () => {
  const { received } = await openSocket(await setup(), "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n");
  await eventually(() => expect(received.text).toContain("slow"), 5000);
});

test.each([
  ["no byte", ""],
  ["half a header", "GET / HTTP/1.1\r\nHost: h\r\nX-Half: "],
  ["half a body", DRIPPED],
  ["a request after another, of which half has come", "GET / HTTP/1.1\r\nHost: h\r\n\r\nGET / HT"],
  ["a request whose answer it doesn't read", "GET /long HTTP/1.1\r\nHost: h\r\n\r\n"],
])("a stop soon ends with a peer that sent %s", async (_what, bytes) => {
  const server = await setup(LONG_LIMITS);
  const { socket, received } = await openSocket(server, bytes);
  if (bytes.startsWith("GET /long")) {
    socket.pause();
  } else if (bytes.includes("\r\n\r\nGET")) {
    await eventually(() => expect(received.text).toContain("ok"), 5000);
  }
  // The server has this connection once it has answered a later one.
  await (await fetch(`http://127.0.0.1:${server.port}/`)).text();
  const startedAtMs = performance.now();
  await server.stop();
  expect(performance.now() - startedAtMs).toBeLessThan(2000);
});

test("a stop waits for a slow handler", async () => {
  const server = await setup(LONG_LIMITS);
  const answer = fetch(`http://127.0.0.1:${server.port}/slow`).then((response) => response.text());
  await (await fetch(`http://127.0.0.1:${server.port}/`)).text();
  await server.stop();
  expect(await answer).toBe("slow");
});

test("with too many connections the one that is longest without a request makes room", async () => {
  const server = await setup({ ...LONG_LIMITS, connectionsMax: 3 });
  const used = await openSocket(server, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  await eventually(() => expect(used.received.text).toContain("ok"));
  const [first, second] = [await openSocket(server), await openSocket(server)];
  await eventually(() => expect(server.connections).toBe(3));
  const third = await openSocket(server, "GET / HTTP/1.1\r\nHost: h\r\n\r\n");
  await eventually(() => expect(third.received.text).toContain("ok"));
  await destroyed(first.socket);
  expect([used, second, third].map(({ received }) => received.isEnded)).toEqual([false, false, false]);
  expect(server.connections).toBe(3);
});

test("with a request on each connection a hundred more are surplus, and the next is closed", async () => {
  let closedCount = 0;
  const held: boolean[] = [];
  const onNoRoom = () => {
    closedCount += 1;
  };
  const server = await setup({ ...LONG_LIMITS, connectionsMax: 2 }, { onNoRoom, held });
  const peers = [];
  while (peers.length < 103) {
    peers.push(await openSocket(server, "GET /held HTTP/1.1\r\nHost: h\r\n\r\n"));
    await eventually(() => expect(held.length + closedCount).toBe(peers.length));
  }
  expect(held).toEqual([false, false, ...Array.from({ length: 100 }, () => true)]);
  expect([closedCount, server.connections]).toEqual([1, 102]);
});

const PIPELINED = "GET /slow HTTP/1.1\r\nHost: h\r\n\r\n";

test("a few requests that don't wait for their answers are answered in order", async () => {
  const { received } = await openSocket(await setup(), PIPELINED.repeat(9) + PIPELINED.replace("/slow", "/"));
  await eventually(() => expect(received.text.match(/\bslow|ok$/g)).toHaveLength(10), 5000);
  expect(received.text).toMatch(/ok$/);
});

test("many requests that don't wait for their answers end their connection", async () => {
  const server = await setup(LONG_LIMITS);
  let created = 0;
  const onCreated = () => {
    created += 1;
  };
  subscribe("http.server.request.start", onCreated);
  onTestFinished(() => void unsubscribe("http.server.request.start", onCreated));
  const { socket, received } = await openSocket(server, PIPELINED.repeat(1000));
  await destroyed(socket);
  expect(received.text).toBe("");
  // Those after the first one too many were not even parsed.
  expect(created).toBe(21);
});

test("few requests of all connections together wait for the answers to others", async () => {
  const server = await setup(LONG_LIMITS);
  const peers = await Promise.all(Array.from({ length: 60 }, () => openSocket(server, PIPELINED.repeat(20))));
  await eventually(() => {
    expect(peers.filter(({ socket, received }) => socket.destroyed || received.isEnded)).toHaveLength(8);
    expect(peers.filter(({ received }) => received.text.match(/slow/g)?.length === 20)).toHaveLength(52);
  }, 5000);
  // Those that were answered or closed make room.
  const { received } = await openSocket(server, PIPELINED.repeat(20));
  await eventually(() => expect(received.text.match(/slow/g)).toHaveLength(20), 5000);
});

test("a listener starts if a whole request has less time than headers have by default", async () => {
  const { port } = await setup({ requestTimeoutMs: 4000 });
  expect(port).toBeGreaterThan(0);
});

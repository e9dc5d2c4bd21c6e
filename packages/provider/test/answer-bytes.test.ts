/** The provider's client against servers and edges whose answers are unusual on the wire. */
import { lookup } from "node:dns";
import { createSecureServer } from "node:http2";
import { createServer, type Socket } from "node:net";
import { PassThrough } from "node:stream";
import { setImmediate as nextTurn } from "node:timers/promises";
import { createServer as createTlsServer } from "node:tls";
import { brotliCompressSync, deflateRawSync, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { adAckIdSchema } from "@adrelay/contract";
import { afterEach, beforeEach, describe, expect, onTestFinished, test } from "vitest";
import { ProviderClient } from "../src/index.ts";
import { createDispatcher } from "../src/transport.ts";
import { listenInTest, startRawServer } from "./raw-server.ts";
import { filesOf, serverPair, tlsOf } from "./tls-fixtures.ts";

let client: ProviderClient;

beforeEach(() => {
  client = new ProviderClient();
});
afterEach(() => client.stop());

const PAIR = serverPair("provider");
const TLS = tlsOf(filesOf());

const BODY = { name: "Grüße 東京", n: 1 };
const JSON_TEXT = JSON.stringify(BODY);
const UTF8 = Buffer.from(JSON_TEXT);
const HEAD = "HTTP/1.1 200 OK\r\n";

interface Answer {
  readonly before?: string;
  readonly headers?: readonly string[];
  readonly bytes?: Buffer;
  readonly status?: number;
}

/** The bytes of an answer with one Content-Length, unless `headers` has others. */
function answerOf({ before = "", headers = [], bytes = UTF8, status = 200 }: Answer): Buffer {
  const lines = headers.some((line) => /^content-length:/i.test(line))
    ? headers
    : [...headers, `Content-Length: ${bytes.length}`];
  const head = `${before}HTTP/1.1 ${status} OK\r\n${lines.join("\r\n")}\r\n\r\n`;
  return Buffer.concat([Buffer.from(head, "latin1"), bytes]);
}

const MARK = Buffer.from([0xef, 0xbb, 0xbf]);
const callOf = (url: string, timeoutMs = 5000) => ({
  account: { url, apiKey: "k", apiKeyHeader: "X-Key" },
  body: "{}",
  requestId: "r",
  timeoutMs,
});

const acknowledge = (url: string, timeoutMs?: number) =>
  client.acknowledge({
    ...callOf(url, timeoutMs),
    adAckId: adAckIdSchema.parse("0b0f7a52-5c1c-8a0b-9a55-2f5a5f7b8f10"),
  });

/** Answers each request with these bytes, and counts connections. */
async function serve(answer: Buffer): Promise<{ url: string; connections: () => number }> {
  let connections = 0;
  const port = await startRawServer((socket) => {
    connections += 1;
    socket.on("data", () => socket.write(answer));
  });
  return { url: `http://127.0.0.1:${port}`, connections: () => connections };
}

const CONTINUE = "HTTP/1.1 100 Continue\r\n\r\n";

test.each([
  ["an unasked 100 Continue", answerOf({ before: CONTINUE })],
  ["three of them", answerOf({ before: CONTINUE.repeat(3) })],
  ["a 100 with headers", answerOf({ before: "HTTP/1.1 100 Continue\r\nDate: now\r\nX-Edge: 1\r\n\r\n" })],
  [
    "a 102 and a 103",
    answerOf({ before: "HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 103 Early Hints\r\n\r\n" }),
  ],
  ["a 100 without reason", answerOf({ before: "HTTP/1.1 100\r\n\r\n" })],
  ["a header of 20 KB", answerOf({ headers: [`X-Edge: ${"a".repeat(20_000)}`] })],
  ["headers of 200 KB", answerOf({ headers: Array(20).fill(`X-Edge: ${"a".repeat(10_000)}`) })],
  ["Content-Length twice", answerOf({ headers: Array(2).fill(`Content-Length: ${UTF8.length}`) })],
  [
    "Content-Length three times, in any case",
    answerOf({
      headers: [
        `content-length:${UTF8.length}`,
        "X-A: b",
        `CONTENT-LENGTH:  ${UTF8.length} `,
        `Content-Length: ${UTF8.length}`,
      ],
    }),
  ],
  [
    "Content-Length twice in a line",
    answerOf({ headers: [`Content-Length: ${UTF8.length}, ${UTF8.length}`] }),
  ],
  [
    "all of it",
    answerOf({
      before: CONTINUE,
      headers: [`X: ${"a".repeat(30_000)}`, ...Array(2).fill(`Content-Length: ${UTF8.length}`)],
    }),
  ],
])("an answer with %s is read, and its connection is used again", async (_name, answer) => {
  const { url, connections } = await serve(answer);
  for (let call = 0; call < 3; call += 1) {
    expect(await acknowledge(url)).toEqual({
      kind: "answered",
      status: 200,
      body: BODY,
      retryAfter: undefined,
    });
    // A connection is free again in the next turn of the event loop.
    await nextTurn();
  }
  expect(connections()).toBe(1);
});

test("an answer that arrives byte by byte is mended like a whole one", async () => {
  const answer = answerOf({
    before: CONTINUE.repeat(2),
    headers: Array(2).fill(`Content-Length: ${UTF8.length}`),
  });
  const port = await startRawServer((socket) => {
    socket.setNoDelay(true).once("data", () => {
      let at = 0;
      const next = () => {
        socket.write(answer.subarray(at, at + 1));
        at += 1;
        if (at < answer.length) {
          setImmediate(next);
        }
      };
      next();
    });
  });
  expect(await acknowledge(`http://127.0.0.1:${port}`)).toMatchObject({ kind: "answered", body: BODY });
});

test("an answer that comes while the body is still being sent is left as it is", async () => {
  const dispatcher = createDispatcher({
    tls: undefined,
    proxy: undefined,
    isTunnelled: false,
    allowH2: false,
    lookup,
  });
  onTestFinished(() => dispatcher.destroy());
  const lines = Array.from(
    { length: 50 },
    (_, at) => `${CONTINUE}Content-Length: 1\r\nContent-Length: 1 line ${at}\n`,
  );
  const port = await startRawServer((socket) => {
    let sent = 0;
    socket.setNoDelay(true).on("data", () => {
      if (sent === 0) {
        socket.write(`${CONTINUE}${HEAD}Content-Length: ${lines.join("").length}\r\n\r\n`);
      }
      socket.write(lines[sent] ?? "");
      sent += 1;
    });
  });
  const body = new PassThrough();
  body.write("x");
  const answer = await dispatcher.request({
    origin: `http://127.0.0.1:${port}`,
    path: "/",
    method: "POST",
    body,
  });
  let text = "";
  for await (const piece of answer.body) {
    text += piece;
    body.write("x");
  }
  expect(text).toBe(lines.join(""));
});

test("bytes of a body that look like heads are left as they are", async () => {
  const text = JSON.stringify(`${CONTINUE}${HEAD}Content-Length: 7\r\nContent-Length: 7\r\n\r\n`);
  const split = text.length / 2;
  const answer = answerOf({ bytes: Buffer.from(text) });
  const bodyAt = answer.length - text.length;
  const port = await startRawServer((socket) => {
    socket.setNoDelay(true).once("data", () => {
      socket.write(answer.subarray(0, bodyAt), () => {
        socket.write(answer.subarray(bodyAt, bodyAt + split), () =>
          socket.write(answer.subarray(bodyAt + split)),
        );
      });
    });
  });
  const { reply } = await client.startInjection(callOf(`http://127.0.0.1:${port}`)).reply;
  expect(reply).toMatchObject({ kind: "answered", body: JSON.parse(text) });
});

test.each(["http", "https"])(
  "over %s an answer that comes before the end of a long request is read",
  async (scheme) => {
    const answer = answerOf({ headers: Array(2).fill(`Content-Length: ${UTF8.length}`) });
    const bodyAt = answer.length - UTF8.length;
    let unread = 8 * 1024 * 1024;
    const onConnection = (socket: Socket) => {
      socket.on("error", () => {});
      socket.once("data", () => socket.write(answer.subarray(0, bodyAt)));
      socket.on("data", (chunk: Buffer) => {
        unread -= chunk.length;
        // The rest of the request is its head.
        if (unread <= 0) {
          socket.end(answer.subarray(bodyAt));
        }
      });
    };
    const server = scheme === "http" ? createServer(onConnection) : createTlsServer(PAIR, onConnection);
    const call = callOf(`${scheme}://127.0.0.1:${await listenInTest(server)}`);
    const { reply } = await client.startInjection({
      ...call,
      account: { ...call.account, tls: TLS },
      body: Buffer.alloc(unread, "x"),
    }).reply;
    expect(reply).toMatchObject({ kind: "answered", body: BODY });
  },
);

test.each([
  [
    "Content-Length twice, but unequal",
    answerOf({ headers: ["Content-Length: 5", "Content-Length: 6"] }),
    "connection_lost",
  ],
  [
    "a Content-Length that is no number",
    answerOf({ headers: ["Content-Length: x", "Content-Length: x"] }),
    "connection_lost",
  ],
  [
    "101 Switching Protocols",
    Buffer.from("HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: upgrade\r\n\r\n"),
    "connection_lost",
  ],
  [
    "headers of 300 KB",
    answerOf({ headers: Array(30).fill(`X-Edge: ${"a".repeat(10_000)}`) }),
    "answer_too_large",
  ],
  ["a head without an end", Buffer.from(`${HEAD}X: ${"a".repeat(600_000)}`), "answer_too_large"],
])("a call whose answer has %s fails at once, and has a cause", async (_name, answer, code) => {
  const { url } = await serve(answer);
  const reply = await acknowledge(url);
  expect(reply).toMatchObject({ kind: "failed", stage: "after_send", code });
  expect(reply.kind === "failed" && reply.cause).toMatch(/^[A-Za-z0-9_]+$/);
});

test("100 Continue without end is bounded by the call's time limit", async () => {
  const port = await startRawServer((socket) => {
    const go = () => socket.destroyed || socket.write(CONTINUE, () => setImmediate(go));
    socket.once("data", go);
  });
  const reply = await acknowledge(`http://127.0.0.1:${port}`, 300);
  expect(reply).toMatchObject({ kind: "failed", stage: "after_send", code: "timeout" });
});

test("a connection that ends after a part of a head is lost", async () => {
  const port = await startRawServer((socket) =>
    socket.once("data", () => socket.end(`${CONTINUE}${HEAD}Cont`)),
  );
  const reply = await acknowledge(`http://127.0.0.1:${port}`);
  expect(reply).toMatchObject({ kind: "failed", stage: "after_send", code: "connection_lost" });
});

describe("over TLS", () => {
  const callOverTls = (port: number) => {
    const call = callOf(`https://127.0.0.1:${port}`);
    return client.startInjection({ ...call, account: { ...call.account, tls: TLS } }).reply;
  };

  test("heads are mended as well", async () => {
    const answer = answerOf({ before: CONTINUE, headers: Array(2).fill(`Content-Length: ${UTF8.length}`) });
    const server = createTlsServer(PAIR, (socket) => {
      socket.on("error", () => {}).on("data", () => socket.write(answer));
    });
    const port = await listenInTest(server);
    for (let call = 0; call < 3; call += 1) {
      expect((await callOverTls(port)).reply).toMatchObject({ kind: "answered", body: BODY });
    }
  });

  test("an answer over HTTP/2 is read, compressed too", async () => {
    const server = createSecureServer(PAIR, (request, response) => {
      request.resume().once("end", () => {
        response.writeHead(200, { "content-encoding": "gzip" }).end(gzipSync(UTF8));
      });
    });
    const port = await listenInTest(server);
    const { reply, bytes } = await callOverTls(port);
    expect(reply).toMatchObject({ kind: "answered", status: 200, body: BODY });
    expect(bytes).toEqual(UTF8);
  });
});

const gzip = (bytes: Buffer) => gzipSync(bytes);

test.each([
  ["gzip", ["Content-Encoding: gzip"], gzip(UTF8)],
  ["x-gzip", ["Content-Encoding: x-gzip"], gzip(UTF8)],
  ["GZIP in upper case", ["Content-Encoding: GZIP"], gzip(UTF8)],
  ["deflate with zlib's header", ["Content-Encoding: deflate"], deflateSync(UTF8)],
  ["deflate without it", ["Content-Encoding: deflate"], deflateRawSync(UTF8)],
  ["br", ["Content-Encoding: br"], brotliCompressSync(UTF8)],
  ["zstd", ["Content-Encoding: zstd"], zstdCompressSync(UTF8)],
  ["gzip, then br", ["Content-Encoding: gzip, br"], brotliCompressSync(gzip(UTF8))],
  [
    "gzip, then br, in two lines",
    ["Content-Encoding: gzip", "Content-Encoding: br"],
    brotliCompressSync(gzip(UTF8)),
  ],
  ["identity", ["Content-Encoding: identity"], UTF8],
  ["an empty coding", ["Content-Encoding:"], UTF8],
  ["identity and gzip", ["Content-Encoding: identity, gzip"], gzip(UTF8)],
  ["a mark", [], Buffer.concat([MARK, UTF8])],
  ["gzip around a mark", ["Content-Encoding: gzip"], gzip(Buffer.concat([MARK, UTF8]))],
  ["the header gzip, but already decompressed", ["Content-Encoding: gzip"], UTF8],
  ["an unknown coding, but nothing done", ["Content-Encoding: utf-8"], UTF8],
  ["UTF-16 with a mark", ["Content-Type: application/json"], Buffer.from(`\ufeff${JSON_TEXT}`, "utf16le")],
  [
    "UTF-16 without a mark",
    ["Content-Type: application/json; charset=UTF-16LE"],
    Buffer.from(JSON_TEXT, "utf16le"),
  ],
  [
    "UTF-16 big endian",
    ["Content-Type: application/json"],
    Buffer.from(`\ufeff${JSON_TEXT}`, "utf16le").swap16(),
  ],
  ["an unknown charset", ["Content-Type: application/json; charset=nonsense"], UTF8],
  ["a charset in quotes", ['Content-Type: application/json; charset="UTF-8"'], UTF8],
])("an answer in %s is read, and passed on in plain UTF-8", async (_name, headers, bytes) => {
  const { url } = await serve(answerOf({ headers, bytes }));
  const raw = await client.startInjection(callOf(url)).reply;
  expect(raw.reply).toMatchObject({ kind: "answered", status: 200, body: BODY });
  expect(raw.bytes.toString()).toBe(JSON_TEXT);
  expect(raw.contentType ?? "utf-8").not.toMatch(/utf-?16/i);
});

test("an answer in Latin-1 is read by its charset", async () => {
  const headers = ["Content-Type: application/json;charset=ISO-8859-1"];
  const bytes = Buffer.from('{"name":"Grüße"}', "latin1");
  const raw = await client.startInjection(callOf((await serve(answerOf({ headers, bytes }))).url)).reply;
  expect(raw.reply).toMatchObject({ body: { name: "Grüße" } });
  expect(raw.bytes.toString()).toBe('{"name":"Grüße"}');
  expect(raw.contentType).toBe("application/json; charset=utf-8");
});

const BROKEN = gzip(Buffer.from(JSON_TEXT.repeat(100)));

test.each([
  ["a gzip stream that is cut off", ["Content-Encoding: gzip"], BROKEN.subarray(0, BROKEN.length - 12)],
  [
    "a gzip stream with a wrong check sum",
    ["Content-Encoding: gzip"],
    Buffer.concat([BROKEN.subarray(0, -8), Buffer.alloc(8, 7)]),
  ],
  ["bytes that are no gzip", ["Content-Encoding: gzip"], Buffer.from([1, 2, 3])],
  ["bytes that are no deflate", ["Content-Encoding: deflate"], Buffer.from([0xff, 0xff, 0xff])],
  ["bytes that are no br", ["Content-Encoding: br"], Buffer.alloc(50, 0xff)],
  ["bytes that are no zstd", ["Content-Encoding: zstd"], Buffer.alloc(50, 0xff)],
  ["nothing", ["Content-Encoding: gzip"], Buffer.alloc(0)],
  ["the coding compress", ["Content-Encoding: compress"], Buffer.from([0x1f, 0x9d, 0x90])],
  ["the name of a property of all objects", ["Content-Encoding: constructor"], Buffer.from([1])],
  [
    "six codings",
    [`Content-Encoding: ${Array(6).fill("gzip").join()}`],
    [1, 2, 3, 4, 5, 6].reduce(gzip, UTF8),
  ],
])("an answer of %s has a status, but neither body nor bytes", async (_name, headers, bytes) => {
  const { url } = await serve(answerOf({ headers, bytes, status: 422 }));
  const raw = await client.startInjection(callOf(url)).reply;
  expect(raw.reply).toEqual({ kind: "answered", status: 422, body: undefined, retryAfter: undefined });
  expect(raw.bytes).toHaveLength(0);
});

test.each([
  ["gzip", gzipSync(Buffer.alloc(64 * 1024 * 1024))],
  ["br", brotliCompressSync(Buffer.alloc(64 * 1024 * 1024))],
  ["zstd", zstdCompressSync(Buffer.alloc(64 * 1024 * 1024))],
  ["gzip, gzip", gzipSync(gzipSync(Buffer.alloc(64 * 1024 * 1024)))],
])("a bomb in %s is decompressed only up to the bound", async (coding, bytes) => {
  const { url } = await serve(answerOf({ headers: [`Content-Encoding: ${coding}`], bytes }));
  const memoryBefore = process.memoryUsage().arrayBuffers;
  expect(await acknowledge(url)).toMatchObject({
    kind: "failed",
    stage: "after_send",
    code: "answer_too_large",
  });
  expect(process.memoryUsage().arrayBuffers - memoryBefore).toBeLessThan(32 * 1024 * 1024);
});

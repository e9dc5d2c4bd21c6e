/** Bodies over real sockets. */
import { once } from "node:events";
import { type ClientRequest, createServer, type RequestOptions, request } from "node:http";
import { brotliCompressSync, gzipSync, zstdCompressSync } from "node:zlib";
import { eventually } from "@adrelay/testkit";
import express from "express";
import { expect, onTestFinished, test } from "vitest";
import { makeReadBody, parseJsonObject } from "../src/index.ts";

const LIMIT_BYTES = 100_000;

/** A server that reads one body. `read` resolves to the parsed body, or to the status of the error. */
async function setup(hold?: (bytes: number) => boolean) {
  const readBody = makeReadBody(LIMIT_BYTES);
  const app = express();
  const read = new Promise<unknown>((resolve) => {
    app.post("/", async (incoming, outgoing) => {
      const reading = readBody(incoming, outgoing, hold);
      resolve(
        await reading.then(
          (outcome) => (outcome === "read" ? parseJsonObject(incoming) : outcome),
          pickStatus,
        ),
      );
      outgoing.end();
    });
  });
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  onTestFinished(() => {
    server.closeAllConnections();
    server.close();
  });
  const send = (options: RequestOptions): ClientRequest => {
    const port = Object(server.address()).port;
    return request({ host: "127.0.0.1", port, method: "POST", ...options }).on("error", () => {});
  };
  return { read, send };
}

function pickStatus(error: unknown) {
  return { status: Object(error).status };
}

const TEXT = JSON.stringify({ text: "grüße \u{1F600} ".repeat(4000) });
const BYTES = Buffer.from(TEXT);

test("a plain body that arrives in many pieces is read completely", async () => {
  const { read, send } = await setup();
  const call = send({ headers: { "content-length": BYTES.length } });
  for (let at = 0; at < BYTES.length; at += 10_001) {
    call.write(BYTES.subarray(at, at + 10_001));
    await new Promise((resolve) => setImmediate(resolve));
  }
  call.end();
  expect(await read).toMatchObject({ kind: "ok", text: TEXT });
});

test.each([
  ["chunked", {}, BYTES],
  ["compressed", { "content-encoding": "gzip" }, gzipSync(BYTES)],
])("a %s body is read completely", async (_name, headers, bytes) => {
  const { read, send } = await setup();
  send({ headers: { ...headers, "transfer-encoding": "chunked" } }).end(bytes);
  expect(await read).toMatchObject({ kind: "ok", text: TEXT });
});

test("a body of zero bytes is refused as empty", async () => {
  const { read, send } = await setup();
  send({ headers: { "content-length": 0 } }).end();
  expect(await read).toEqual({ kind: "refused", code: "invalid_json", detail: "the body is empty" });
});

test("a body above the limit is refused", async () => {
  const { read, send } = await setup();
  send({ headers: { "content-length": LIMIT_BYTES + 1 } }).end(Buffer.alloc(LIMIT_BYTES + 1));
  expect(await read).toEqual({ status: 413 });
});

test("a body whose caller hangs up before its end is the caller's fault", async () => {
  const { read, send } = await setup();
  const call = send({ headers: { "content-length": BYTES.length } });
  call.write(BYTES.subarray(0, 1000), () => call.destroy());
  expect(await read).toEqual({ status: 400 });
});

/** Counts what a body holds, up to a limit. */
function makeHold(bytesMax: number) {
  const held = { bytes: 0 };
  const hold = (bytes: number) => {
    held.bytes += bytes;
    return held.bytes <= bytesMax;
  };
  return { held, hold };
}

test("a body of many small pieces holds at most twice what has arrived", async () => {
  const { held, hold } = makeHold(1_000_000);
  const { read, send } = await setup(hold);
  const call = send({ headers: { "content-length": 100_000 } });
  call.write(Buffer.alloc(1));
  for (let sent = 1; sent < 5000; sent += 1) {
    call.write(Buffer.alloc(1, "x"));
  }
  await eventually(() => expect(held.bytes).toBeGreaterThanOrEqual(5000));
  expect(held.bytes).toBeLessThanOrEqual(10_000);
  call.destroy();
  expect(await read).toEqual({ status: 400 });
});

test("a body that is read completely holds exactly its announced length", async () => {
  const { held, hold } = makeHold(1_000_000);
  const { read, send } = await setup(hold);
  const call = send({ headers: { "content-length": BYTES.length } });
  call.write(BYTES.subarray(0, 10));
  await eventually(() => expect(held.bytes).toBe(10));
  call.end(BYTES.subarray(10));
  expect(await read).toMatchObject({ kind: "ok", text: TEXT });
  expect(held.bytes).toBe(BYTES.length);
});

test.each([
  ["plain", {}, BYTES, 20_000],
  ["compressed", { "content-encoding": "gzip" }, gzipSync(BYTES), 90_000],
  ["hardly begun compressed", { "content-encoding": "gzip" }, gzipSync(BYTES), 20_000],
])("a %s body that may not be held is refused while it arrives", async (_name, headers, bytes, bytesMax) => {
  const { hold } = makeHold(bytesMax);
  const { read, send } = await setup(hold);
  const call = send({ headers: { ...headers, "content-length": bytes.length } });
  const answered = once(call, "response");
  call.end(bytes);
  expect(await read).toBe("not_held");
  await answered;
});

test.each([
  ["gzip", gzipSync(BYTES), 65_536],
  ["br", brotliCompressSync(BYTES), 524_288],
  ["zstd", zstdCompressSync(BYTES), 262_144],
])("a body in %s holds its decompressor's memory while it arrives", async (encoding, bytes, memoryBytes) => {
  const { held, hold } = makeHold(1_000_000);
  const { read, send } = await setup(hold);
  const call = send({ headers: { "content-encoding": encoding, "content-length": bytes.length } });
  call.flushHeaders();
  await eventually(() => expect(held.bytes).toBe(memoryBytes));
  call.end(bytes);
  expect(await read).toMatchObject({ kind: "ok", text: TEXT });
  expect(held.bytes).toBeGreaterThanOrEqual(BYTES.length);
  expect(held.bytes).toBeLessThanOrEqual(2 * BYTES.length);
});

test("a compressed body that is cut off holds nothing of its decompressor", async () => {
  const { held, hold } = makeHold(1_000_000);
  const { read, send } = await setup(hold);
  const call = send({ headers: { "content-encoding": "zstd", "content-length": 1000 } });
  call.flushHeaders();
  await eventually(() => expect(held.bytes).toBe(262_144));
  call.destroy();
  expect(await read).toEqual({ status: 400 });
  expect(held.bytes).toBe(0);
});

/** A zstd frame with one block as it is. The byte says how large a window a reader must have. */
const framed = (windowByte: number) =>
  Buffer.from([0x28, 0xb5, 0x2f, 0xfd, 0, windowByte, (12 << 3) | 1, 0, 0, ...Buffer.from('{"text":"x"}')]);

test.each([
  ["8 MB", 0x68, { kind: "ok", text: '{"text":"x"}' }],
  ["16 MB", 0x70, { status: 400 }],
  ["128 MB", 0x88, { status: 400 }],
])("a body in zstd that needs a window of %s is read up to 8 MB", async (_size, windowByte, outcome) => {
  const { read, send } = await setup();
  send({ headers: { "content-encoding": "zstd" } }).end(framed(windowByte));
  expect(await read).toMatchObject(outcome);
});

test.each([
  ["gzip", gzipSync(BYTES).subarray(0, 50), 400],
  ["gzip", gzipSync(Buffer.alloc(7 * LIMIT_BYTES)), 413],
  ["compress", BYTES, 415],
])("a faulty body with the encoding %s is refused", async (encoding, bytes, status) => {
  const { read, send } = await setup();
  send({ headers: { "content-encoding": encoding, "content-length": bytes.length } }).end(bytes);
  expect(await read).toEqual({ status });
});

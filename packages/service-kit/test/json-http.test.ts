/** Bodies over real sockets. Plain bodies are read by hand, all others by Express. */
import { once } from "node:events";
import { type ClientRequest, createServer, type RequestOptions, request } from "node:http";
import { gzipSync } from "node:zlib";
import express from "express";
import { expect, onTestFinished, test } from "vitest";
import { makeReadBody, parseJsonObject } from "../src/index.ts";

const LIMIT_BYTES = 100_000;

/** A server that reads one body. `read` resolves to the parsed body, or to the status of the error. */
async function setup() {
  const readBody = makeReadBody(LIMIT_BYTES);
  const app = express();
  const read = new Promise<unknown>((resolve) => {
    app.post("/", async (incoming, outgoing) => {
      resolve(await readBody(incoming, outgoing).then(() => parseJsonObject(incoming), pickStatus));
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

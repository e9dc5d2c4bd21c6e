/** Each inside of Express that src/express/ reaches into. A failure here says what an upgrade of Express has changed. */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, IncomingMessage, ServerResponse } from "node:http";
import { connect } from "node:net";
import { text } from "node:stream/consumers";
import { manifestsThatName } from "@adrelay/testkit";
import express, { type Express } from "express";
import installed from "express/package.json" with { type: "json" };
import { pino } from "pino";
import { expect, onTestFinished, test } from "vitest";
import manifest from "../package.json" with { type: "json" };
import { messageClassesOf } from "../src/express/message-classes.ts";
import { createApp, makeReadBody, sendJson, startHttpServer } from "../src/index.ts";

async function listen(app: Express): Promise<number> {
  const server = await startHttpServer(app, {
    name: "a test",
    host: "127.0.0.1",
    port: 0,
    log: pino({ level: "silent" }),
  });
  onTestFinished(() => server.stop(AbortSignal.abort()));
  return server.port;
}

test("the installed Express is the version that the folder was written for", () => {
  expect(installed.version).toBe(manifest.dependencies.express);
  const readme = readFileSync(new URL("../src/express/README.md", import.meta.url), "utf8");
  expect(readme).toContain(`Written for Express ${installed.version}.`);
});

test("every package pins exactly this Express", () => {
  const pins = manifestsThatName("express");
  expect(pins.length).toBeGreaterThan(3);
  expect(pins.filter(({ range }) => range !== installed.version)).toEqual([]);
});

/** Whether a request and its response have the same prototypes before Express handles them and while it does. */
async function keepPrototypes(hasOwnClasses: boolean) {
  const app = express();
  const classes = hasOwnClasses ? messageClassesOf(app) : {};
  const seen: unknown[] = [];
  const addPrototypes = (request: IncomingMessage, response: ServerResponse) =>
    seen.push(Object.getPrototypeOf(request), Object.getPrototypeOf(response));
  app.get("/", (request, response) => {
    addPrototypes(request, response);
    expect(request).toBeInstanceOf(IncomingMessage);
    expect(response).toBeInstanceOf(ServerResponse);
    response.json({ isOfApp: request.app === app, locals: typeof response.locals, path: request.path });
  });
  const server = createServer(classes, (request, response) => {
    addPrototypes(request, response);
    app(request, response);
  }).listen(0, "127.0.0.1");
  onTestFinished(() => void server.close());
  await once(server, "listening");
  const answer = await fetch(`http://127.0.0.1:${Object(server.address()).port}/`);
  expect(await answer.json()).toEqual({ isOfApp: true, locals: "object", path: "/" });
  expect(seen).toHaveLength(4);
  return seen[0] === seen[2] && seen[1] === seen[3];
}

test("Express changes the prototypes of Node's requests and responses, and not those of our classes", async () => {
  expect(await keepPrototypes(false)).toBe(false);
  expect(await keepPrototypes(true)).toBe(true);
});

test("a plain body is read exactly as express.raw reads it", async () => {
  const app = express();
  const readBody = makeReadBody(1000);
  app.post("/ours", async (request, response) => {
    await readBody(request, response);
    response.json({ isBuffer: Buffer.isBuffer(request.body), body: String(request.body) });
  });
  app.post("/theirs", express.raw({ type: () => true, limit: 1000 }), (request, response) => {
    response.json({ isBuffer: Buffer.isBuffer(request.body), body: String(request.body) });
  });
  const port = await listen(app);
  const post = async (path: string) =>
    (await fetch(`http://127.0.0.1:${port}${path}`, { method: "POST", body: '{"text":"grüße"}' })).json();
  expect(await post("/ours")).toEqual(await post("/theirs"));
});

test("sendJson sends the status, the headers and the body that Express sends", async () => {
  const app = createApp(() => {});
  const body = JSON.stringify({ text: "grüße" });
  app.get("/ours", (_request, response) => sendJson(response, 201, body));
  app.get("/theirs", (_request, response) => {
    response.status(201).type("application/json").send(body);
  });
  const port = await listen(app);
  const get = async (path: string) => {
    const answer = await fetch(`http://127.0.0.1:${port}${path}`, { headers: { "X-Request-Id": "r" } });
    const headers = Object.fromEntries([...answer.headers].filter(([name]) => name !== "date"));
    return { status: answer.status, headers, body: await answer.text() };
  };
  const ours = await get("/ours");
  expect(ours).toEqual(await get("/theirs"));
  expect(ours.headers["content-length"]).toBe(String(Buffer.byteLength(body)));
});

test("invalid HTTP gets a 400 in our own form, and its connection is closed", async () => {
  const port = await listen(express());
  const socket = connect(port, "127.0.0.1");
  socket.write("not http\r\n\r\n");
  const answer = await text(socket);
  expect(answer).toMatch(/^HTTP\/1\.1 400 Bad Request\r\nContent-Type: application\/problem\+json\r\n/);
  const [head = "", body = ""] = answer.split("\r\n\r\n");
  expect(JSON.parse(body)).toMatchObject({ status: 400, code: "bad_request" });
  expect(head).toContain(`X-Request-Id: ${JSON.parse(body).request_id}`);
});

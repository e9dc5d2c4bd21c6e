/** What passes through the proxy as it is, and what must not pass. */
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { eventually } from "@adrelay/testkit";
import { afterEach, describe, expect, test } from "vitest";
import {
  bodyOf,
  CHAT,
  type Fixture,
  type FixtureOptions,
  KEY,
  KEY_HEADERS,
  type Model,
  openRaw,
  startModel,
  startProxy,
  withSteps,
} from "./http-fixture.ts";

const open: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) {
    await part.stop();
  }
});

async function setup(
  handle: Parameters<typeof startModel>[0],
  options?: FixtureOptions,
): Promise<{ model: Model; proxy: Fixture }> {
  const model = await startModel(handle);
  const proxy = await startProxy(model.url, options);
  open.push(model, proxy);
  return { model, proxy };
}

/** A model's server that keeps what it was asked. */
function echo(seen: { request: IncomingMessage; body: Buffer }[]): Parameters<typeof startModel>[0] {
  return async (request, response) => {
    seen.push({ request, body: await bodyOf(request) });
    response.end("ok");
  };
}

const rawRequest = (lines: readonly string[]) => `${lines.join("\r\n")}\r\n\r\n`;

describe("requests", () => {
  test.each(["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])(
    "%s passes with its path, query and body",
    async (method) => {
      const seen: { request: IncomingMessage; body: Buffer }[] = [];
      const { proxy } = await setup(echo(seen));
      const body = Buffer.from([0, 255, 1, 2, 13, 10]);
      const answer = await fetch(`${proxy.url}/v1/files/a%2Fb?x=%20y&x=2`, {
        method,
        headers: KEY_HEADERS,
        ...(method === "GET" ? {} : { body }),
      });
      expect(await answer.text()).toBe("ok");
      expect(seen[0]?.request.method).toBe(method);
      expect(seen[0]?.request.url).toBe("/v1/files/a%2Fb?x=%20y&x=2");
      expect(seen[0]?.body).toEqual(method === "GET" ? Buffer.alloc(0) : body);
    },
  );

  test("none of our headers and no publisher's key goes upstream", async () => {
    const seen: { request: IncomingMessage; body: Buffer }[] = [];
    const { model, proxy } = await setup(echo(seen));
    await fetch(`${proxy.url}/v1/models`, {
      headers: {
        ...KEY_HEADERS,
        "X-Adrelay-Session-Id": "s",
        "x-adrelay-ad": "off",
        "Accept-Encoding": "br",
      },
    });
    const raw = seen[0]?.request.rawHeaders.join("\n") ?? "";
    expect(raw).not.toMatch(/adrelay/i);
    expect(raw).not.toContain(KEY);
    expect(seen[0]?.request.headers).toMatchObject({
      authorization: "Bearer model-key",
      "accept-encoding": "identity",
      host: `127.0.0.1:${model.port}`,
    });
  });

  test("hop-by-hop headers end here, also those that Connection names", async () => {
    const seen: { request: IncomingMessage; body: Buffer }[] = [];
    const { proxy } = await setup(echo(seen));
    const { socket, received } = await openRaw(proxy.port);
    socket.write(
      rawRequest([
        "GET /v1/models HTTP/1.1",
        "Host: x",
        `X-Service-API-Key: ${KEY}`,
        "Connection: keep-alive, X-Hop",
        "X-Hop: 1",
        "Keep-Alive: timeout=5",
        "Proxy-Authorization: Basic x",
        "TE: trailers",
        "X-Kept-CASE: 1",
        "x-kept-case: 2",
      ]),
    );
    await eventually(() => expect(received()).toContain("200 OK"));
    const names = seen[0]?.request.rawHeaders.filter((_, at) => at % 2 === 0) ?? [];
    expect(names.filter((name) => /hop|keep-alive|proxy|^te$/i.test(name))).toEqual([]);
    expect(names.filter((name) => /kept/i.test(name))).toEqual(["X-Kept-CASE", "x-kept-case"]);
    socket.destroy();
  });

  test("a body is sent after 100 Continue", async () => {
    const seen: { request: IncomingMessage; body: Buffer }[] = [];
    const { proxy } = await setup(echo(seen));
    const { socket, received } = await openRaw(proxy.port);
    const head = ["POST /v1/chat/completions HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
    socket.write(rawRequest([...head, "Expect: 100-continue", `Content-Length: ${CHAT.length}`]));
    await eventually(() => expect(received()).toContain("100 Continue"));
    socket.write(CHAT);
    await eventually(() => expect(received()).toContain("200 OK"));
    expect(seen[0]?.body.toString()).toBe(CHAT);
    expect(seen[0]?.request.headers.expect).toBeUndefined();
    socket.destroy();
  });

  test("a spliced body has its own length", async () => {
    const seen: { request: IncomingMessage; body: Buffer }[] = [];
    const { proxy } = await setup(echo(seen), { prepareCall: withSteps([]) });
    await fetch(`${proxy.url}/v1/chat/completions`, { method: "POST", headers: KEY_HEADERS, body: CHAT });
    expect(seen[0]?.body.toString()).toBe(` ${CHAT}`);
    expect(seen[0]?.request.headers["content-length"]).toBe(String(CHAT.length + 1));
  });
});

describe("targets", () => {
  test.each([
    "/",
    "/v1",
    "/v2/models",
    "/v1/../admin",
    "/v1/a/..",
    "/v1/%2e%2e/admin",
    "/v1/a%2f..%2f..%2fadmin",
    "/v1/.%2E/admin",
    "/v1/..\\admin",
    "//evil.example/v1/models",
    "*",
  ])("%s is not served", async (target) => {
    const seen: { request: IncomingMessage; body: Buffer }[] = [];
    const { proxy } = await setup(echo(seen));
    const { socket, received } = await openRaw(proxy.port);
    socket.write(rawRequest([`GET ${target} HTTP/1.1`, "Host: x", `X-Service-API-Key: ${KEY}`]));
    await eventually(() => expect(received()).toContain("404 Not Found"));
    expect(received()).toContain("application/problem+json");
    expect(seen).toEqual([]);
    socket.destroy();
  });

  test("a whole URL as target calls our base URL, never the caller's", async () => {
    const seen: { request: IncomingMessage; body: Buffer }[] = [];
    const { model, proxy } = await setup(echo(seen));
    const { socket, received } = await openRaw(proxy.port);
    const target = "http://169.254.169.254/v1/models/gpt-4.1?a=..";
    socket.write(rawRequest([`GET ${target} HTTP/1.1`, "Host: y", `X-Service-API-Key: ${KEY}`]));
    await eventually(() => expect(received()).toContain("200 OK"));
    expect(seen[0]?.request.url).toBe("/v1/models/gpt-4.1?a=..");
    expect(seen[0]?.request.headers.host).toBe(`127.0.0.1:${model.port}`);
    socket.destroy();
  });

  test("Anthropic's calls go to Anthropic's base URL", async () => {
    const seen: { request: IncomingMessage; body: Buffer }[] = [];
    const anthropic = await startModel(echo(seen));
    open.push(anthropic);
    const { proxy } = await setup((_, response) => response.end("openai"), {
      anthropicUrl: `${anthropic.url}/base/`,
    });
    const call = (path: string, headers = {}) =>
      fetch(proxy.url + path, { headers: { ...KEY_HEADERS, ...headers } }).then((answer) => answer.text());
    expect(await call("/v1/messages/count_tokens")).toBe("ok");
    expect(await call("/v1/models", { "anthropic-version": "2023-06-01" })).toBe("ok");
    expect(await call("/v1/models")).toBe("openai");
    expect(await call("/v1/messagesx")).toBe("openai");
    expect(seen.map(({ request }) => request.url)).toEqual([
      "/base/v1/messages/count_tokens",
      "/base/v1/models",
    ]);
  });
});

describe("answers", () => {
  test("headers keep their order, case and repetitions, but for this hop's", async () => {
    const { proxy } = await setup((_, response) => {
      response.writeHead(201, "Very Created", [
        ...["X-B", "1", "Set-Cookie", "a=1", "x-a", "\xe9", "Set-Cookie", "b=2", "Connection", "X-Gone"],
        ...["X-Gone", "1", "Content-Encoding", "odd", "Date", "then", "X-Adrelay-Ad", "injected"],
      ]);
      response.end(Buffer.from("ok"));
    });
    const { socket, received } = await openRaw(proxy.port);
    socket.write(rawRequest(["GET /v1/models HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`]));
    await eventually(() => expect(received()).toContain("ok"));
    const [head = ""] = received().split("\r\n\r\n");
    expect(
      head.split("\r\n").filter((line) => !/^(connection|keep-alive|transfer-encoding)/i.test(line)),
    ).toEqual([
      "HTTP/1.1 201 Very Created",
      ...["X-B: 1", "Set-Cookie: a=1", "x-a: \xe9", "Set-Cookie: b=2", "Content-Encoding: odd", "Date: then"],
    ]);
    socket.destroy();
  });

  test("HEAD, 204 and 304 have no body, and their connection goes on", async () => {
    const { proxy } = await setup(({ url = "", method }, response) => {
      const status = Number(url.split("/").at(-1));
      response.writeHead(status, method === "HEAD" ? { "Content-Length": "1234" } : {}).end();
    });
    const { socket, received } = await openRaw(proxy.port);
    for (const [method, status] of [
      ["HEAD", 200],
      ["GET", 204],
      ["GET", 304],
    ] as const) {
      socket.write(rawRequest([`${method} /v1/${status} HTTP/1.1`, "Host: x", `X-Service-API-Key: ${KEY}`]));
      await eventually(() => expect(received()).toMatch(new RegExp(`HTTP/1.1 ${status} [^]*\\r\\n\\r\\n$`)));
    }
    expect(received()).toContain("Content-Length: 1234");
    socket.destroy();
  });

  test("trailers and interim answers pass", async () => {
    const { proxy } = await setup((_, response) => {
      response.writeEarlyHints({ link: "</a>; rel=preload" });
      response.writeHead(200, { Trailer: "X-Sum" });
      response.write("ok");
      response.addTrailers({ "X-Sum": "42" });
      response.end();
    });
    const { socket, received } = await openRaw(proxy.port);
    socket.write(rawRequest(["GET /v1/models HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`]));
    await eventually(() => expect(received()).toContain("X-Sum: 42"));
    expect(received()).toContain("103 Early Hints");
    socket.destroy();
  });
});

describe("errors have the dialect's form", () => {
  const openai = (code: string) => ({
    error: expect.objectContaining({ code, message: expect.any(String) }),
  });
  const anthropic = { type: "error", error: { type: expect.any(String), message: expect.any(String) } };
  const json = async (url: string, headers: Record<string, string>, method = "POST") => {
    const answer = await fetch(url, { method, headers, ...(method === "POST" ? { body: CHAT } : {}) });
    return { status: answer.status, body: await answer.json() };
  };

  test("401 without a valid key, on every path", async () => {
    const { proxy } = await setup((_, response) => response.end());
    for (const path of ["/v1/chat/completions", "/v1/responses", "/v1/models"]) {
      const answer = await json(proxy.url + path, { authorization: "Bearer x" });
      expect(answer).toEqual({ status: 401, body: openai("invalid_api_key") });
    }
    const answer = await json(`${proxy.url}/v1/messages`, { "x-service-api-key": "wrong" });
    expect(answer).toEqual({ status: 401, body: expect.objectContaining(anthropic) });
    await fetch(`${proxy.url}/v1/models`, { headers: KEY_HEADERS });
    const metrics = await proxy.metrics();
    expect(metrics).toContain('adrelay_proxy_keys_total{result="refused"} 4\n');
    expect(metrics).toContain('adrelay_proxy_keys_total{result="accepted"} 1\n');
  });

  test("502 if the model's server can't be reached or hangs up", async () => {
    const { model, proxy } = await setup((request) => request.socket.destroy());
    expect(await json(`${proxy.url}/v1/responses`, KEY_HEADERS)).toEqual({
      status: 502,
      body: openai("model_lost"),
    });
    await model.stop();
    open.splice(0, 1);
    expect(await json(`${proxy.url}/v1/messages`, KEY_HEADERS)).toEqual({
      status: 502,
      body: expect.objectContaining(anthropic),
    });
  });

  test("504 if the model's server sends nothing for the idle limit", async () => {
    const { model, proxy } = await setup(() => {}, { idleTimeoutMs: 50 });
    expect(await json(`${proxy.url}/v1/chat/completions`, KEY_HEADERS)).toEqual({
      status: 504,
      body: openai("model_timeout"),
    });
    await eventually(() => expect(model.sockets.size).toBe(0));
  });

  test("503 above the limit of calls", async () => {
    const waiting = Promise.withResolvers<void>();
    const { proxy } = await setup(
      async (_, response) => {
        await waiting.promise;
        response.end("ok");
      },
      { callsMax: 1 },
    );
    const first = fetch(`${proxy.url}/v1/models`, { headers: KEY_HEADERS });
    await eventually(() => expect(proxy.room.calls.used).toBe(1));
    expect(await json(`${proxy.url}/v1/responses`, KEY_HEADERS)).toEqual({
      status: 503,
      body: openai("overloaded"),
    });
    waiting.resolve();
    expect(await (await first).text()).toBe("ok");
    await eventually(() => expect(proxy.room.calls.used).toBe(0));
  });

  test("an upgrade gets 501, an offer of h2c doesn't", async () => {
    const { proxy } = await setup((_, response) => response.end("ok"));
    const call = async (upgrade: string) => {
      const { socket, received } = await openRaw(proxy.port);
      const head = ["GET /v1/realtime HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
      socket.write(rawRequest([...head, "Connection: Upgrade", `Upgrade: ${upgrade}`]));
      await eventually(() => expect(received()).toContain("\r\n\r\n"));
      socket.destroy();
      return received().slice(9, 12);
    };
    expect(await call("websocket")).toBe("501");
    expect(await call("h2c")).toBe("200");
  });
});

test("the log line of a call has no key, no text and no query", async () => {
  const { pino } = await import("pino");
  const lines: string[] = [];
  const log = pino({}, { write: (line) => void lines.push(line) });
  const { proxy } = await setup((_, response) => response.end("answer-canary"), { log });
  await fetch(`${proxy.url}/v1/chat/completions?q=query-canary`, {
    method: "POST",
    headers: { ...KEY_HEADERS, "X-Request-Id": "r-1" },
    body: CHAT.replace("hello", "prompt-canary"),
  }).then((answer) => answer.text());
  await eventually(() => expect(lines).toHaveLength(1));
  expect(JSON.parse(lines[0] ?? "")).toMatchObject({
    event: "proxy_call",
    publisher: "default",
    path: "chat_completions",
    upstream: "openai",
    status: 200,
    outcome: "finished",
    ad: "skipped",
    ad_reason: "off",
    answer_bytes: 13,
    request_id: "r-1",
  });
  expect(lines.join()).not.toMatch(/canary|model-key|publisher-key/);
});

test.each([
  ["x-request-id", "req_0a1b", "req_0a1b"],
  ["request-id", "req_011CSHoEeqs5C35K2UUqR7Fy", "req_011CSHoEeqs5C35K2UUqR7Fy"],
  ["x-request-id", "what the user said", undefined],
  ["x-request-id", "r-1", undefined],
])("a model's %s: %s stands in the line as %s", async (name, id, logged) => {
  const lines: string[] = [];
  const { pino } = await import("pino");
  const log = pino({}, { write: (line) => void lines.push(line) });
  const { proxy } = await setup((_, response) => response.setHeader(name, id).end("ok"), { log });
  const headers = { ...KEY_HEADERS, "X-Request-Id": "r-1" };
  const answer = await fetch(`${proxy.url}/v1/models`, { headers });
  expect(answer.headers.get(name)).toBe(id);
  await eventually(() => expect(lines).toHaveLength(1));
  const line = JSON.parse(lines[0] ?? "");
  expect([line.request_id, line.model_request_id]).toEqual(["r-1", logged]);
});

test("calls go by the proxy that HTTP_PROXY names, but not to exempt hosts", async () => {
  let proxied = 0;
  const way = await startModel(async (request, response) => {
    proxied += 1;
    const answer = await fetch(request.url ?? "");
    response.end(await answer.text());
  });
  open.push(way);
  const model = await startModel((_, response) => response.end("ok"));
  open.push(model);
  for (const [exempt, count] of [
    [[], 1],
    [["127.0.0.1"], 1],
  ] as const) {
    const proxies = { http: way.url, https: undefined, exempt };
    const proxy = await startProxy(model.url, { proxies });
    open.push(proxy);
    const answer = await fetch(`${proxy.url}/v1/models`, { headers: KEY_HEADERS });
    expect(await answer.text()).toBe("ok");
    expect(proxied).toBe(count);
  }
});

test("a connection serves many calls one after the other", async () => {
  let calls = 0;
  const { model, proxy } = await setup(async (request, response) => {
    await bodyOf(request);
    calls += 1;
    response.end("ok");
  });
  const { socket, received } = await openRaw(proxy.port);
  for (let call = 1; call <= 5; call += 1) {
    const head = ["POST /v1/embeddings HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
    socket.write(`${rawRequest([...head, "Content-Length: 3"])}abc`);
    await eventually(() => expect(calls).toBe(call));
    await eventually(() => expect(received().split("200 OK")).toHaveLength(call + 1));
  }
  expect(model.sockets.size).toBe(1);
  socket.destroy();
  await once(socket, "close");
});

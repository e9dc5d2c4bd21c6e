/**
 * The proxy before callers that break HTTP, JSON, or their promises. It guards against requests that are read in two ways,
 * against bodies that are changed, against connections that hold others up, and against an ad in a body that nobody can read.
 */
import { createHash } from "node:crypto";
import { once } from "node:events";
import type { IncomingMessage } from "node:http";
import { eventually, pause } from "@adrelay/testkit";
import { pino } from "pino";
import { afterEach, describe, expect, test } from "vitest";
import { dialectNamed, splice } from "../src/dialects/index.ts";
import type { PrepareCall } from "../src/http/call.ts";
import {
  bodyOf,
  CHAT,
  type Fixture,
  type FixtureOptions,
  KEY,
  KEY_HEADERS,
  KeptStep,
  type Model,
  openRaw,
  startModel,
  startProxy,
} from "./http-fixture.ts";

const open: { stop(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) {
    await part.stop();
  }
});

interface Got {
  readonly url: string;
  readonly headers: readonly string[];
  readonly body: Buffer;
}

interface Setup {
  readonly proxy: Fixture;
  readonly model: Model;
  readonly got: Got[];
  readonly lines: { event: string; level: number; outcome?: string }[];
}

/** A model's server that keeps what it gets, and answers `ok`. */
async function setup(options: FixtureOptions = {}): Promise<Setup> {
  const got: Got[] = [];
  const model = await startModel(async (request: IncomingMessage, response) => {
    const body = await bodyOf(request).catch(() => undefined);
    if (body !== undefined) {
      got.push({ url: request.url ?? "", headers: request.rawHeaders, body });
      response.end("ok");
    }
  });
  const lines: Setup["lines"] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const proxy = await startProxy(model.url, { log, ...options });
  open.push(model, proxy);
  return { proxy, model, got, lines };
}

/** Sends bytes, and reads until the proxy closes or has answered so many times. */
async function sendRaw(proxy: Fixture, bytes: string | Buffer, answers = 1): Promise<string> {
  const { socket, received } = await openRaw(proxy.port);
  socket.write(bytes);
  await eventually(() => expect(socket.closed || received().split("HTTP/1.1 ").length > answers).toBe(true));
  socket.destroy();
  return received();
}

const headOf = (lines: readonly string[], target = "/v1/chat/completions") =>
  [`POST ${target} HTTP/1.1`, "Host: x", `X-Service-API-Key: ${KEY}`, ...lines, "", ""].join("\r\n");
const LENGTH = `Content-Length: ${CHAT.length}`;

function expectNoBug({ lines, proxy }: Setup): void {
  expect(lines.filter(({ level }) => level >= 50)).toEqual([]);
  expect(proxy.room.calls.used).toBe(0);
  expect(proxy.room.bytes.used).toBe(0);
}

async function expectAlive(all: Setup): Promise<void> {
  const answer = await fetch(`${all.proxy.url}/v1/models`, { headers: KEY_HEADERS });
  expect(await answer.text()).toBe("ok");
  await eventually(() => expectNoBug(all));
}

describe("a request that can be read in two ways reaches no model", () => {
  const smuggled = `0\r\n\r\nGET /v1/smuggled HTTP/1.1\r\nHost: x\r\n\r\n`;
  test.each([
    ["a length and chunks", headOf(["Content-Length: 5", "Transfer-Encoding: chunked"]) + smuggled],
    ["chunks and a length", headOf(["Transfer-Encoding: chunked", "Content-Length: 5"]) + smuggled],
    ["two lengths", headOf(["Content-Length: 2", "Content-Length: 40"]) + CHAT],
    ["two lengths in a line", headOf(["Content-Length: 2, 2"]) + CHAT],
    ["a folded header", headOf(["X-A: b", " folded", LENGTH]) + CHAT],
    ["a folded Transfer-Encoding", headOf(["Transfer-Encoding:", " chunked"]) + smuggled],
    ["chunked twice", headOf(["Transfer-Encoding: chunked, chunked"]) + smuggled],
    ["chunks behind another coding", headOf(["Transfer-Encoding: chunked, identity"]) + smuggled],
    ["a space before the colon", headOf(["Transfer-Encoding : chunked"]) + smuggled],
    ["a zero byte in a header", headOf(["X-A: a\0b", LENGTH]) + CHAT],
    ["a bare line feed in a header", headOf([`X-A: b\nX-B: c`, LENGTH]).replaceAll("\r\n", "\n") + CHAT],
    ["a bare carriage return", headOf(["X-A: b\rX-B: c", LENGTH]) + CHAT],
    ["a zero byte in the path", headOf([LENGTH], "/v1/chat/\0completions") + CHAT],
    ["a space in the path", headOf([LENGTH], "/v1/chat completions") + CHAT],
    ["a length with a sign", headOf(["Content-Length: +5"]) + CHAT],
    ["a length in hex", headOf(["Content-Length: 0x5"]) + CHAT],
    ["a chunk's size that is too large", `${headOf(["Transfer-Encoding: chunked"])}fffffffffffffffff\r\nx`],
    ["a head of 64 KB", headOf([`X-A: ${"a".repeat(65_536)}`, LENGTH]) + CHAT],
    [
      "no host",
      `POST /v1/chat/completions HTTP/1.1\r\nX-Service-API-Key: ${KEY}\r\n${LENGTH}\r\n\r\n${CHAT}`,
    ],
  ])("%s", async (_, bytes) => {
    const all = await setup();
    const answer = await sendRaw(all.proxy, bytes);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(all.got).toEqual([]);
    await expectAlive(all);
  });
});

describe("an odd target", () => {
  test.each([
    ["//v1/chat/completions", 404],
    ["/v1/../v1/chat/completions", 404],
    ["/v1/%2e%2e/admin", 404],
    ["/v1/..%2fadmin", 404],
    ["/v1/x/%2E./../admin", 404],
    ["/v1/..;/admin", 404],
    ["/v1\\..\\admin", 404],
    ["/v1", 404],
    ["/V1/models", 404],
    ["*", 404],
    ["http://169.254.169.254/latest", 404],
    ["http://169.254.169.254/v1/chat/completions", 200],
    ["http://user:pass@evil.test:1/v1/models?x=//y", 200],
    ["http://[::1", 404],
    ["/v1/%2fx//y", 200],
    ["/v1/models?u=http://evil.test/../..", 200],
  ])("%s gets %i, and never another host", async (target, status) => {
    const all = await setup();
    const answer = await sendRaw(all.proxy, headOf([LENGTH, "Connection: close"], target) + CHAT);
    expect(answer).toMatch(new RegExp(`^HTTP/1\\.1 ${status} `));
    expect(all.got.every(({ url }) => url.startsWith("/v1/"))).toBe(true);
    expect(all.got).toHaveLength(status === 200 ? 1 : 0);
    await expectAlive(all);
  });
});

describe("a body", () => {
  test("in chunks with extensions and trailers arrives without them", async () => {
    const all = await setup();
    const pieces = [CHAT.slice(0, 10), CHAT.slice(10)];
    const chunks = pieces.map((one) => `${one.length.toString(16)};name="a;b"\r\n${one}\r\n`).join("");
    const answer = await sendRaw(
      all.proxy,
      `${headOf(["Transfer-Encoding: chunked", "Trailer: X-T"])}${chunks}0;last\r\nX-T: ${"t".repeat(100)}\r\n\r\n`,
    );
    expect(answer).toContain("200 OK");
    expect(all.got.map(({ body }) => body.toString())).toEqual([CHAT]);
    expect(all.got[0]?.headers.map((one) => one.toLowerCase())).not.toContain("x-t");
  });

  test("of each of many pipelined calls is its own, and the answers come in their order", async () => {
    const all = await setup();
    const bodies = Array.from({ length: 20 }, (_, at) => CHAT.replace("hello", `hello ${at}`));
    const bytes = bodies.map((body) => headOf([`Content-Length: ${body.length}`]) + body).join("");
    const answer = await sendRaw(all.proxy, bytes, 20);
    expect(answer.split("200 OK")).toHaveLength(21);
    expect(all.got.map(({ body }) => body.toString()).toSorted()).toEqual(bodies.toSorted());
    await expectAlive(all);
  });

  test("that is cut in the middle reaches no model as a whole one", async () => {
    const all = await setup();
    const { socket } = await openRaw(all.proxy.port);
    socket.end(headOf([LENGTH]) + CHAT.slice(0, 20));
    await once(socket, "close");
    await expectAlive(all);
    expect(all.got.filter(({ url }) => url.includes("completions"))).toEqual([]);
  });

  test("of 300 MB passes as it is in a part of that memory", async () => {
    const pieces = 300;
    const piece = Buffer.alloc(1024 * 1024, "x");
    const hash = createHash("sha256");
    let passed = 0;
    const model = await startModel(async (request, response) => {
      for await (const chunk of request) {
        hash.update(chunk);
        passed += chunk.length;
      }
      response.end("ok");
    });
    const proxy = await startProxy(model.url);
    open.push(model, proxy);
    const before = process.memoryUsage().rss;
    let peak = before;
    const sent = createHash("sha256");
    const { socket, received } = await openRaw(proxy.port);
    socket.write(headOf([`Content-Length: ${pieces * piece.length}`]));
    for (let at = 0; at < pieces; at += 1) {
      sent.update(piece);
      if (!socket.write(piece)) {
        await once(socket, "drain");
      }
      peak = Math.max(peak, process.memoryUsage().rss);
    }
    await eventually(() => expect(received()).toContain("200 OK"), 10_000);
    socket.destroy();
    expect(passed).toBe(pieces * piece.length);
    expect(hash.digest("hex")).toBe(sent.digest("hex"));
    // Buffers that nothing holds any more stay until V8 collects them.
    expect((peak - before) / piece.length).toBeLessThan(pieces / 2);
  }, 20_000);

  /** Puts an ad where the dialect says, and nothing else. */
  const withPrompt: PrepareCall = ({ body, dialect }) => {
    const request = dialect.readRequest(body, { allowsCacheMarked: false, allowsStoredResponses: true });
    return Promise.resolve({
      ad:
        request.kind === "skip"
          ? { state: "skipped", reason: request.reason }
          : { state: "injected", reason: undefined },
      adResponseId: undefined,
      body: request.kind === "skip" ? body : splice(body, request.place, `${request.userText} <ad>`),
      step: request.kind === "skip" ? undefined : new KeptStep(),
    });
  };
  const message = (content: string) => `{"messages":[{"role":"user","content":${content}}]}`;

  test.each([
    ["a byte-order mark", Buffer.from(`\ufeff${CHAT}`), "skipped; reason=not_json"],
    ["invalid UTF-8", Buffer.from(message('"a\u00ff"'), "latin1"), "skipped; reason=not_json"],
    ["UTF-16", Buffer.from(CHAT, "utf16le"), "skipped; reason=not_json"],
    ["nothing", Buffer.alloc(0), "skipped; reason=not_json"],
    ["a zero byte behind", Buffer.from(`${CHAT}\0`), "skipped; reason=not_json"],
    ["50,000 levels", Buffer.from("[".repeat(50_000)), "skipped; reason=too_large"],
    ["no last bracket", Buffer.from(CHAT.slice(0, -1)), "skipped; reason=not_json"],
    ["two documents", Buffer.from(CHAT + CHAT), "skipped; reason=not_json"],
  ])("with %s passes as it is, without an ad", async (_, body, ad) => {
    const all = await setup({ prepareCall: withPrompt });
    const answer = await fetch(`${all.proxy.url}/v1/chat/completions`, {
      method: "POST",
      headers: KEY_HEADERS,
      body,
    });
    expect(answer.headers.get("x-adrelay-ad")).toBe(ad);
    expect(all.got[0]?.body.equals(body)).toBe(true);
    await expectAlive(all);
  });

  test.each([
    ["a lone surrogate", message('"a\\ud800"')],
    ["an escaped zero byte", message('"a\\u0000b"')],
    [
      "`messages` twice",
      '{"messages":[{"role":"user","content":"first"}],"messages":[{"role":"user","content":"last"}]}',
    ],
    ["`content` twice", '{"messages":[{"role":"user","content":"first","content":"last"}]}'],
    ["an escaped name", '{"mess\\u0061ges":[{"role":"user","content":"last"}]}'],
    ["`__proto__`", '{"__proto__":{"messages":[]},"messages":[{"role":"user","content":"last"}]}'],
  ])("with %s has its ad where a parser reads the last user text", async (_, text) => {
    const all = await setup({ prepareCall: withPrompt });
    const answer = await fetch(`${all.proxy.url}/v1/chat/completions`, {
      method: "POST",
      headers: KEY_HEADERS,
      body: text,
    });
    const ad = answer.headers.get("x-adrelay-ad");
    const sent = String(all.got[0]?.body);
    if (ad === "injected") {
      const { messages } = JSON.parse(sent);
      expect(messages.at(-1).content).toBe(`${JSON.parse(text).messages.at(-1).content} <ad>`);
    } else {
      expect(sent).toBe(text);
    }
  });
});

describe("callers that hold connections", () => {
  test("500 silent ones and 100 slow bodies keep no other call waiting", async () => {
    const all = await setup();
    const silent = await Promise.all(Array.from({ length: 500 }, () => openRaw(all.proxy.port)));
    const slow = await Promise.all(Array.from({ length: 100 }, () => openRaw(all.proxy.port)));
    for (const { socket } of slow) {
      socket.write(`${headOf([LENGTH])}{`);
    }
    for (let round = 0; round < 5; round += 1) {
      for (const { socket } of slow) {
        socket.write(" ");
      }
      const answer = await fetch(`${all.proxy.url}/v1/chat/completions`, {
        method: "POST",
        headers: KEY_HEADERS,
        body: CHAT,
      });
      expect(await answer.text()).toBe("ok");
    }
    for (const { socket } of [...silent, ...slow]) {
      socket.destroy();
    }
    await expectAlive(all);
  });

  test("a body that comes slowly is waited for, and one that stops gets 408", async () => {
    const all = await setup({ idleTimeoutMs: 1000 });
    const [slow, stopped] = [await openRaw(all.proxy.port), await openRaw(all.proxy.port)];
    for (const { socket } of [slow, stopped]) {
      socket.write(headOf([LENGTH]));
    }
    for (let sent = 0; sent < CHAT.length; sent += 20) {
      slow.socket.write(CHAT.slice(sent, sent + 20));
      await pause(300);
    }
    await eventually(() => expect(slow.received()).toMatch(/^HTTP\/1\.1 200/));
    await eventually(() => expect(stopped.socket.closed).toBe(true));
    expect(stopped.received()).toMatch(/^HTTP\/1\.1 408[\s\S]*"code":"request_timeout"/);
    slow.socket.destroy();
    await expectAlive(all);
  });

  test("3,000 headers are refused, and 150 pass", async () => {
    const all = await setup();
    const many = (count: number) => Array.from({ length: count }, (_, at) => `X-${at}: ${at}`);
    expect(await sendRaw(all.proxy, headOf([...many(3000), LENGTH]) + CHAT)).toMatch(/^HTTP\/1\.1 4/);
    expect(await sendRaw(all.proxy, headOf([...many(150), LENGTH]) + CHAT)).toContain("200 OK");
    expect(all.got[0]?.headers.filter((name) => /^X-\d+$/.test(name))).toHaveLength(150);
    await expectAlive(all);
  });
});

test("each dialect reads a body without a user's text in bounded time, however it is built", () => {
  const bodies = [
    `{"messages":[${'{"role":"user"},'.repeat(100_000)}{}]}`,
    `{${'"messages":[],'.repeat(100_000)}"a":1}`,
    message100k(),
    `{"input":"${"\\u0041".repeat(500_000)}"}`,
  ];
  for (const body of bodies) {
    for (const name of ["chat_completions", "messages", "responses"] as const) {
      const startedAtMs = performance.now();
      dialectNamed(name).readRequest(Buffer.from(body), {
        allowsCacheMarked: false,
        allowsStoredResponses: true,
      });
      // A search that begins anew in each of these places would take minutes.
      expect(performance.now() - startedAtMs).toBeLessThan(20_000);
    }
  }
});

function message100k(): string {
  const parts = '{"type":"text","text":"a"},'.repeat(50_000);
  return `{"messages":[{"role":"user","content":[${parts}{"type":"image"}]}]}`;
}

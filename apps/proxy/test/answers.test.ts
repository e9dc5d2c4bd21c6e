/** What a step is told of an answer: exactly what was written to the caller, and once how it ended. */
import { once } from "node:events";
import { request as httpRequest, type IncomingMessage, type RequestListener } from "node:http";
import { gzipSync } from "node:zlib";
import type { Caller } from "@adrelay/relay-kit";
import { eventually } from "@adrelay/testkit";
import { Dispatcher } from "undici";
import { afterEach, describe, expect, test } from "vitest";
import {
  bodyOf,
  CHAT,
  chatStream,
  type Fixture,
  type FixtureOptions,
  KEY,
  KEY_HEADERS,
  type KeptStep,
  type Model,
  openRaw,
  startModel,
  startProxy,
  withSteps,
  write,
} from "./http-fixture.ts";

const open: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) {
    await part.stop();
  }
});

interface Setup {
  readonly model: Model;
  readonly proxy: Fixture;
  readonly steps: KeptStep[];
}

async function setup(handle: RequestListener, options?: FixtureOptions): Promise<Setup> {
  const steps: KeptStep[] = [];
  const model = await startModel(handle);
  const proxy = await startProxy(model.url, { prepareCall: withSteps(steps), ...options });
  open.push(model, proxy);
  return { model, proxy, steps };
}

const post = (proxy: Fixture, path = "/v1/chat/completions", signal?: AbortSignal) =>
  fetch(proxy.url + path, {
    method: "POST",
    headers: KEY_HEADERS,
    body: CHAT,
    ...(signal === undefined ? {} : { signal }),
  });

/** All that a caller receives until the connection is cut. */
async function receivedOf(proxy: Fixture): Promise<string> {
  const request = httpRequest(`${proxy.url}/v1/chat/completions`, { method: "POST", headers: KEY_HEADERS });
  const response = await new Promise<IncomingMessage>((resolve, reject) => {
    request.on("response", resolve).on("error", reject).end(CHAT);
  });
  let text = "";
  response.setEncoding("utf8").on("error", () => {});
  response.on("data", (chunk) => {
    text += chunk;
  });
  await new Promise<void>((resolve) => response.once("close", resolve));
  return text;
}

/** A model's server whose last bytes and the loss of whose connection come in the same turn of the event loop. */
class LostModel extends Dispatcher {
  readonly #chunks: readonly string[];

  constructor(chunks: readonly string[]) {
    super();
    this.#chunks = chunks;
  }

  override dispatch(_options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): boolean {
    const nothing = () => {};
    const state = { aborted: false, paused: false, reason: null, rawTrailers: [] };
    const rawHeaders = ["Content-Type", "text/event-stream"];
    const controller = { ...state, rawHeaders, abort: nothing, pause: nothing, resume: nothing };
    setImmediate(() => {
      handler.onRequestStart?.(controller, {});
      handler.onResponseStart?.(controller, 200, { "content-type": "text/event-stream" }, "OK");
      for (const chunk of this.#chunks) {
        handler.onResponseData?.(controller, Buffer.from(chunk));
      }
      handler.onResponseError?.(controller, new TypeError("lost"));
    });
    return true;
  }
}

const STREAM = { "Content-Type": "text/event-stream; charset=utf-8", "Cache-Control": "private" };

const messagesEvent = (type: string, rest: object = {}) =>
  `event: ${type}\ndata: ${JSON.stringify({ type, ...rest })}\n\n`;
const messagesStream = (texts: readonly string[]) => [
  messagesEvent("message_start", { message: { id: "m", role: "assistant", content: [] } }),
  messagesEvent("content_block_start", { index: 0, content_block: { type: "text", text: "" } }),
  ...texts.map((text) =>
    messagesEvent("content_block_delta", { index: 0, delta: { type: "text_delta", text } }),
  ),
  messagesEvent("content_block_stop", { index: 0 }),
  messagesEvent("message_delta", { delta: { stop_reason: "end_turn" } }),
  messagesEvent("message_stop"),
];
const responsesStream = (texts: readonly string[]) => [
  messagesEvent("response.created", { response: { id: "r" } }),
  ...texts.map((delta) =>
    messagesEvent("response.output_text.delta", { item_id: "i", output_index: 0, content_index: 0, delta }),
  ),
  messagesEvent("response.completed", { response: { id: "r", status: "completed", output: [] } }),
];

const TEXTS = ["Häl", "lo 🙂", " w\n", "örld"];
const DIALECTS = [
  ["/v1/chat/completions", chatStream(TEXTS)],
  ["/v1/messages", messagesStream(TEXTS)],
  ["/v1/responses", responsesStream(TEXTS)],
] as const;

describe("streams", () => {
  test.each(DIALECTS)("of %s pass byte for byte and are read, however they are cut", async (path, events) => {
    const bytes = Buffer.from(events.join(""));
    for (const size of [1, 2, 7, 64, bytes.length]) {
      const { proxy, steps } = await setup(async (request, response) => {
        await bodyOf(request);
        response.writeHead(200, STREAM);
        for (let at = 0; at < bytes.length; at += size) {
          await write(response, bytes.subarray(at, at + size));
        }
        response.end();
      });
      const answer = await post(proxy, path);
      expect(Buffer.from(await answer.arrayBuffer())).toEqual(bytes);
      expect(answer.headers.get("x-adrelay-ad")).toBe("injected");
      expect(answer.headers.get("cache-control")).toBe("no-cache, no-transform");
      expect(answer.headers.get("x-accel-buffering")).toBe("no");
      await steps[0]?.end;
      expect(steps[0]?.text).toBe(TEXTS.join(""));
      expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "complete", status: 200 }]);
    }
  });

  test("a stream that is encoded although identity was asked is read, too", async () => {
    const bytes = gzipSync(chatStream(TEXTS).join(""));
    const { proxy, steps } = await setup(async (_, response) => {
      response.writeHead(200, { ...STREAM, "Content-Encoding": "gzip" });
      for (const byte of bytes) {
        await write(response, Buffer.of(byte));
      }
      response.end();
    });
    const answer = await post(proxy);
    expect(answer.headers.get("content-encoding")).toBe("gzip");
    expect(await answer.text()).toBe(chatStream(TEXTS).join(""));
    await steps[0]?.end;
    expect(steps[0]?.text).toBe(TEXTS.join(""));
  });

  test("the head goes out before the first event", async () => {
    const later = Promise.withResolvers<void>();
    const { proxy } = await setup(async (_, response) => {
      response.writeHead(200, STREAM).flushHeaders();
      await later.promise;
      response.end(chatStream(["a"]).join(""));
    });
    const answer = await post(proxy);
    expect(answer.status).toBe(200);
    later.resolve();
    expect(await answer.text()).toBe(chatStream(["a"]).join(""));
  });

  test("a step ends with its last event, not with the connection", async () => {
    const later = Promise.withResolvers<void>();
    const { proxy, steps } = await setup(async (_, response) => {
      response.writeHead(200, STREAM);
      response.write(chatStream(TEXTS).join(""));
      await later.promise;
      response.end("data: usage\n\n");
    });
    const answer = await post(proxy);
    await eventually(() => expect(steps[0]?.ends).toHaveLength(1));
    later.resolve();
    expect(await answer.text()).toContain("usage");
    expect(steps[0]?.ends).toHaveLength(1);
  });

  test.each(DIALECTS)("of %s that end without a last event are cut", async (path, events) => {
    const { proxy, steps } = await setup((_, response) => {
      response.writeHead(200, STREAM);
      response.end(events.slice(0, 4).join(""));
    });
    await (await post(proxy, path)).text();
    await steps[0]?.end;
    expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "cut", status: 200 }]);
    expect(TEXTS.join("").startsWith(steps[0]?.text ?? "-")).toBe(true);
  });

  test("a model that is lost in the middle cuts the caller's connection", async () => {
    const { proxy, steps } = await setup(async (_, response) => {
      response.writeHead(200, STREAM);
      await write(response, chatStream(["a"])[0] ?? "");
      response.socket?.destroy();
    });
    await expect(post(proxy).then((answer) => answer.text())).rejects.toThrow();
    await steps[0]?.end;
    expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "cut", status: 200 }]);
    expect(steps[0]?.text).toBe("a");
  });

  test("what a model sent before it was lost reaches the caller and is told as written", async () => {
    const texts = Array.from({ length: 500 }, (_, at) => `${at} of a long answer. `);
    const dispatcher = new LostModel(chatStream(texts).slice(0, texts.length));
    const { proxy, steps } = await setup(() => {}, { dispatcher });
    expect((await receivedOf(proxy)).split("\n\n")).toHaveLength(texts.length + 1);
    await steps[0]?.end;
    expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "cut", status: 200 }]);
    expect(steps[0]?.text).toBe(texts.join(""));
  });

  test("a model that falls silent in the middle is cut at the idle limit", async () => {
    const { proxy, model, steps } = await setup(
      (_, response) => {
        response.writeHead(200, STREAM);
        response.write(chatStream(["a"])[0]);
      },
      { idleTimeoutMs: 100 },
    );
    await expect(post(proxy).then((answer) => answer.text())).rejects.toThrow();
    await steps[0]?.end;
    expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "cut", status: 200 }]);
    await eventually(() => expect(model.sockets.size).toBe(0));
  });

  test("events within the idle limit keep a stream alive", async () => {
    const events = chatStream(["a", "b", "c", "d", "e", "f"]);
    const { proxy } = await setup(
      async (_, response) => {
        response.writeHead(200, STREAM);
        for (const event of events) {
          await new Promise((resolve) => setTimeout(resolve, 100));
          response.write(event);
        }
        response.end();
      },
      { idleTimeoutMs: 500 },
    );
    expect(await (await post(proxy)).text()).toBe(events.join(""));
  });
});

describe("callers that hang up", () => {
  const events = chatStream(TEXTS);
  test.each(events.map((_, at) => at))("after event %i are told of what was written", async (last) => {
    const { model, proxy, steps } = await setup(async (_, response) => {
      response.writeHead(200, STREAM);
      for (const event of events.slice(0, last + 1)) {
        await write(response, event);
      }
    });
    const { socket, received } = await openRaw(proxy.port);
    const head = ["POST /v1/chat/completions HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
    socket.write(`${[...head, `Content-Length: ${CHAT.length}`].join("\r\n")}\r\n\r\n${CHAT}`);
    const event = Buffer.from(events[last] ?? "-").toString("latin1");
    await eventually(() => expect(received()).toContain(event));
    socket.destroy();
    await eventually(() => expect(model.sockets.size).toBe(0));
    await steps[0]?.end;
    expect(steps[0]?.text).toBe(TEXTS.slice(0, last + 1).join(""));
    const end = last >= TEXTS.length ? "complete" : "cut";
    expect(steps[0]?.ends).toEqual([{ kind: "ended", end, status: 200 }]);
    expect(proxy.openCalls.streams).toBe(0);
  });

  test("before the answer cancel the call upstream", async () => {
    const asked = Promise.withResolvers<void>();
    const { model, proxy, steps } = await setup(() => asked.resolve());
    const abort = new AbortController();
    const call = post(proxy, undefined, abort.signal);
    await asked.promise;
    abort.abort();
    await expect(call).rejects.toThrow();
    await steps[0]?.end;
    expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "cut", status: undefined }]);
    await eventually(() => expect(model.sockets.size).toBe(0));
  });

  test("while the ad is asked for send nothing upstream, and end the step", async () => {
    let calls = 0;
    const preparing = Promise.withResolvers<void>();
    const steps: KeptStep[] = [];
    const callers: Caller[] = [];
    const { proxy } = await setup(
      (_, response) => {
        calls += 1;
        response.end();
      },
      {
        prepareCall: async (call) => {
          callers.push(call.caller);
          await preparing.promise;
          return withSteps(steps)(call);
        },
      },
    );
    const abort = new AbortController();
    const call = post(proxy, undefined, abort.signal);
    await eventually(() => expect(callers).toHaveLength(1));
    abort.abort();
    await expect(call).rejects.toThrow();
    await eventually(() => expect(callers[0]?.isGone).toBe(true));
    preparing.resolve();
    await eventually(() =>
      expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "cut", status: undefined }]),
    );
    expect(calls).toBe(0);
    expect(proxy.room.bytes.used).toBe(0);
  });
});

describe("answers that are no stream", () => {
  const chat = JSON.stringify({
    choices: [{ index: 0, message: { role: "assistant", content: "Hi" }, finish_reason: "stop" }],
  });
  const messages = JSON.stringify({ content: [{ type: "text", text: "Hi" }], stop_reason: "end_turn" });
  const responses = JSON.stringify({
    status: "completed",
    output: [{ type: "message", content: [{ type: "output_text", text: "Hi" }] }],
  });

  test.each([
    ["/v1/chat/completions", chat],
    ["/v1/messages", messages],
    ["/v1/responses", responses],
  ])("of %s are told once they are written", async (path, body) => {
    const { proxy, steps } = await setup((_, response) => {
      response.writeHead(200, { "Content-Type": "application/json" }).end(body);
    });
    expect(await (await post(proxy, path)).text()).toBe(body);
    await steps[0]?.end;
    expect(steps[0]?.text).toBe("Hi");
    expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "complete", status: 200 }]);
  });

  test("are told as cut without any text if they aren't finished", async () => {
    const { proxy, steps } = await setup(async (_, response) => {
      response.writeHead(200, { "Content-Type": "application/json", "Content-Length": chat.length });
      await write(response, chat.slice(0, -1));
      response.socket?.destroy();
    });
    await expect(post(proxy).then((answer) => answer.text())).rejects.toThrow();
    await steps[0]?.end;
    expect(steps[0]?.told).toEqual([{ kind: "ended", end: "cut", status: 200 }]);
  });

  test("with an encoding are read", async () => {
    const { proxy, steps } = await setup((_, response) => {
      response.writeHead(200, { "Content-Type": "application/json", "Content-Encoding": "gzip" });
      response.end(gzipSync(chat));
    });
    expect(await (await post(proxy)).text()).toBe(chat);
    await steps[0]?.end;
    expect(steps[0]?.text).toBe("Hi");
  });

  test("longer than what is read pass, too", async () => {
    const long = Buffer.alloc(9 * 1024 * 1024, "x");
    const { proxy, steps } = await setup((_, response) => {
      response.writeHead(200, { "Content-Type": "application/json" }).end(long);
    });
    expect(Buffer.from(await (await post(proxy)).arrayBuffer()).equals(long)).toBe(true);
    await steps[0]?.end;
    expect(steps[0]?.told).toEqual([{ kind: "ended", end: "complete", status: 200 }]);
  });

  test.each([401, 429, 500, 529])("a %i of the model passes, and the step has failed", async (status) => {
    const { proxy, steps } = await setup((_, response) => {
      response.writeHead(status, { "Retry-After": "7" }).end("no");
    });
    const answer = await post(proxy);
    expect(answer.status).toBe(status);
    expect(answer.headers.get("retry-after")).toBe("7");
    expect(await answer.text()).toBe("no");
    await steps[0]?.end;
    expect(steps[0]?.told).toEqual([{ kind: "ended", end: "failed", status }]);
  });
});

describe("an enhanced request that is refused", () => {
  test.each([400, 413, 422])("with %i is sent once more as it came", async (status) => {
    const bodies: string[] = [];
    const { proxy, steps } = await setup(async (request, response) => {
      bodies.push((await bodyOf(request)).toString());
      if (bodies.length === 1) {
        response.writeHead(status).end(Buffer.alloc(1024 * 1024));
      } else {
        response.writeHead(200, STREAM).end(chatStream(["x"]).join(""));
      }
    });
    const answer = await post(proxy);
    expect(answer.headers.get("x-adrelay-ad")).toBe("fallback; reason=model_refused");
    expect(await answer.text()).toBe(chatStream(["x"]).join(""));
    expect(bodies).toEqual([` ${CHAT}`, CHAT]);
    expect(steps[0]?.told).toEqual([{ kind: "refused", status }]);
  });

  test("again with the original is the caller's answer", async () => {
    let calls = 0;
    const { proxy } = await setup(async (request, response) => {
      await bodyOf(request);
      calls += 1;
      response.writeHead(400).end(`no ${calls}`);
    });
    const answer = await post(proxy);
    expect(answer.status).toBe(400);
    expect(await answer.text()).toBe("no 2");
  });

  test("without an ad isn't sent again", async () => {
    let calls = 0;
    const { proxy } = await setup(
      (_, response) => {
        calls += 1;
        response.writeHead(400).end("no");
      },
      {
        prepareCall: ({ body }) =>
          Promise.resolve({
            ad: { state: "no_fill", reason: undefined },
            adResponseId: undefined,
            body,
            step: undefined,
          }),
      },
    );
    const answer = await post(proxy);
    expect(answer.status).toBe(400);
    expect(answer.headers.get("x-adrelay-ad")).toBe("no_fill");
    expect(calls).toBe(1);
  });
});

test("a bug in the making of the ad costs the ad, not the answer", async () => {
  const { proxy } = await setup((_, response) => response.end("ok"), {
    prepareCall: () => Promise.reject(new TypeError("bug")),
  });
  const answer = await post(proxy);
  expect(answer.headers.get("x-adrelay-ad")).toBe("fallback; reason=internal_error");
  expect(await answer.text()).toBe("ok");
});

test("a stop cuts 100 streams, and each of their steps ends", async () => {
  const { model, proxy, steps } = await setup((_, response) => {
    response.writeHead(200, STREAM);
    response.write(chatStream(["a"])[0]);
  });
  const answers = await Promise.all(Array.from({ length: 100 }, () => post(proxy)));
  const readers = answers.map((answer) => answer.text().catch(() => "cut"));
  await eventually(() => expect(steps.filter(({ text }) => text === "a")).toHaveLength(100));
  expect(proxy.openCalls.streams).toBe(100);
  proxy.openCalls.endAll();
  expect(new Set(await Promise.all(readers))).toEqual(new Set(["cut"]));
  await Promise.all(steps.map(({ end }) => end));
  expect(steps.every(({ ends, text }) => ends.length === 1 && text === "a")).toBe(true);
  await eventually(() => expect([model.sockets.size, proxy.openCalls.streams]).toEqual([0, 0]));
});

test("a fault of the copy doesn't touch the stream", async () => {
  const events = [`data: ${"x".repeat(5 * 1024 * 1024)}\n\n`, ...chatStream(["a"])];
  const { proxy, steps } = await setup((_, response) => {
    response.writeHead(200, STREAM).end(events.join(""));
  });
  expect((await (await post(proxy)).text()).length).toBe(events.join("").length);
  await steps[0]?.end;
  expect(steps[0]?.ends).toEqual([{ kind: "ended", end: "cut", status: 200 }]);
});

test.each(["sawCalls", "written", "ended"] as const)(
  "a bug in %s of a step doesn't touch the stream",
  async (method) => {
    const events = chatStream(["a", "b"]);
    const call = { index: 0, id: "call_1", type: "function", function: { name: "f", arguments: "{}" } };
    events.unshift(`data: ${JSON.stringify({ choices: [{ index: 0, delta: { tool_calls: [call] } }] })}\n\n`);
    let thrown = 0;
    const { proxy } = await setup((_, response) => response.writeHead(200, STREAM).end(events.join("")), {
      prepareCall: async (given) => {
        const prepared = await withSteps([])(given);
        const fail = () => {
          thrown += 1;
          throw new TypeError("bug");
        };
        const step = {
          readsAnswer: true,
          refused() {},
          sawCalls() {},
          written() {},
          ended() {},
          [method]: fail,
        };
        return { ...prepared, step };
      },
    });
    expect(await (await post(proxy)).text()).toBe(events.join(""));
    await eventually(() => expect([thrown > 0, proxy.openCalls.streams]).toEqual([true, 0]));
  },
);

test("connections of callers and models are used again after a stream", async () => {
  const { model, proxy, steps } = await setup(async (request, response) => {
    await bodyOf(request);
    response.writeHead(200, STREAM).end(chatStream(["a"]).join(""));
  });
  const { socket, received } = await openRaw(proxy.port);
  const head = ["POST /v1/chat/completions HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
  for (let call = 1; call <= 3; call += 1) {
    socket.write(`${[...head, `Content-Length: ${CHAT.length}`].join("\r\n")}\r\n\r\n${CHAT}`);
    await eventually(() => expect(received().split("\r\n0\r\n\r\n")).toHaveLength(call + 1));
  }
  expect(steps.map(({ text }) => text)).toEqual(["a", "a", "a"]);
  expect(model.sockets.size).toBe(1);
  socket.destroy();
  await once(socket, "close");
});

/** As the process stops. */
async function stopCalls({ server, openCalls }: Fixture, signal?: AbortSignal): Promise<void> {
  await server.stop(signal);
  await openCalls.allFinished();
}

describe("a stop waits until the step has ended", () => {
  test.each([
    ["a model's connection that is lost", {}, (text: string) => Buffer.from(text)],
    ["one whose answer is encoded", { "Content-Encoding": "gzip" }, (text: string) => gzipSync(text)],
  ])("of %s", async (_, encoded, encode) => {
    const written = Promise.withResolvers<IncomingMessage>();
    const { proxy, steps } = await setup(async (request, response) => {
      response.writeHead(200, { ...STREAM, ...encoded });
      await write(response, encode(chatStream(["Take"])[0] ?? ""));
      written.resolve(request);
    });
    const received = receivedOf(proxy);
    const request = await written.promise;
    await eventually(() => expect(proxy.openCalls.streams).toBe(1));
    const stopped = stopCalls(proxy);
    request.destroy();
    await stopped;
    expect(steps.map(({ text, ends }) => [text, ends.length])).toEqual([["Take", 1]]);
    await received;
  });

  test("of an answer that is cut", async () => {
    const { proxy, steps } = await setup(async (_request, response) => {
      response.writeHead(200, STREAM);
      await write(response, chatStream(["Take"])[0] ?? "");
    });
    const received = receivedOf(proxy);
    await eventually(() => expect(steps[0]?.text).toBe("Take"));
    await stopCalls(proxy, AbortSignal.timeout(50));
    expect(steps[0]?.ends).toHaveLength(1);
    await received;
  });
});

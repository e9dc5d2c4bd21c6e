/** Bodies in both directions: what is held of them, and that none is changed. */
import { createHash, randomBytes } from "node:crypto";
import { type IncomingMessage, type RequestListener, request as startRequest } from "node:http";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { eventually } from "@adrelay/testkit";
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
} from "./http-fixture.ts";

const MEBIBYTE = 1024 * 1024;
const open: { stop(): Promise<void> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) {
    await part.stop();
  }
});

async function setup(
  handle: RequestListener,
  options?: FixtureOptions,
): Promise<{ model: Model; proxy: Fixture }> {
  const model = await startModel(handle);
  const proxy = await startProxy(model.url, options);
  open.push(model, proxy);
  return { model, proxy };
}

const digest = (bytes: Buffer) => createHash("sha256").update(bytes).digest("hex");

/** Waits until a number stays the same for a while. */
async function settled(read: () => number): Promise<number> {
  let [last, same] = [-1, 0];
  await eventually(() => {
    const now = read();
    same = now === last ? same + 1 : 0;
    last = now;
    expect(same).toBeGreaterThan(20);
  });
  return last;
}

describe("a body that may not be edited", () => {
  const large = randomBytes(9 * MEBIBYTE);

  test.each([
    ["announced", "Content-Length"],
    ["in chunks", "Transfer-Encoding"],
  ])("because it is too large, %s, passes as it is", async (_, framing) => {
    const seen: { digest: string; headers: IncomingMessage["headers"] }[] = [];
    const { proxy } = await setup(
      async (request, response) => {
        seen.push({ digest: digest(await bodyOf(request)), headers: request.headers });
        response.end("ok");
      },
      { prepareCall: withSteps([]) },
    );
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const headers = {
        ...KEY_HEADERS,
        ...(framing === "Content-Length" ? { [framing]: large.length } : {}),
      };
      const call = startRequest(`${proxy.url}/v1/chat/completions`, { method: "POST", headers }, resolve);
      call.on("error", reject);
      call.write(large.subarray(0, 5 * MEBIBYTE));
      call.end(large.subarray(5 * MEBIBYTE));
    });
    expect((await bodyOf(answer)).toString()).toBe("ok");
    expect(answer.headers["x-adrelay-ad"]).toBe("skipped; reason=too_large");
    expect(seen[0]?.digest).toBe(digest(large));
    expect(seen[0]?.headers["content-length"]).toBe(
      framing === "Content-Length" ? String(large.length) : undefined,
    );
    expect(proxy.room.bytes.used).toBe(0);
  });

  test("counts as held until the model's server takes what was read of it", async () => {
    // More than two connections of the operating system hold.
    const limits = { editLimitBytes: 32 * MEBIBYTE, bytesMax: 256 * MEBIBYTE };
    const body = randomBytes(33 * MEBIBYTE);
    const started = Promise.withResolvers<void>();
    const reading = Promise.withResolvers<void>();
    const { proxy } = await setup(async (request, response) => {
      started.resolve();
      await reading.promise;
      response.end(digest(await bodyOf(request)));
    }, limits);
    const answered = new Promise<IncomingMessage>((resolve, reject) => {
      const options = { method: "POST", headers: { ...KEY_HEADERS, "Transfer-Encoding": "chunked" } };
      startRequest(`${proxy.url}/v1/chat/completions`, options, resolve).on("error", reject).end(body);
    });
    await started.promise;
    expect(proxy.room.bytes.used).toBeGreaterThanOrEqual(31 * MEBIBYTE);
    reading.resolve();
    expect((await bodyOf(await answered)).toString()).toBe(digest(body));
    expect(proxy.room.bytes.used).toBe(0);
  });

  test("because the budget is used up passes as it is", async () => {
    const waiting = Promise.withResolvers<void>();
    const seen: string[] = [];
    const steps: KeptStep[] = [];
    const { proxy } = await setup(
      async (request, response) => {
        seen.push(digest(await bodyOf(request)));
        response.end("ok");
      },
      {
        bytesMax: MEBIBYTE,
        prepareCall: async (call) => {
          await waiting.promise;
          return withSteps(steps)(call);
        },
      },
    );
    const post = (body: Buffer) =>
      fetch(`${proxy.url}/v1/chat/completions`, {
        method: "POST",
        headers: KEY_HEADERS,
        body: new Uint8Array(body),
      });
    const first = post(large.subarray(0, 700_000));
    await eventually(() => expect(proxy.room.bytes.used).toBeGreaterThan(600_000));
    const second = await post(large.subarray(0, 900_000));
    expect(second.headers.get("x-adrelay-ad")).toBe("skipped; reason=overloaded");
    expect(seen).toEqual([digest(large.subarray(0, 900_000))]);
    waiting.resolve();
    expect((await first).headers.get("x-adrelay-ad")).toBe("injected");
    await eventually(() => expect(proxy.room.bytes.used).toBe(0));
  });
});

describe("a body that is cut", () => {
  const head = (path: string, length: number) =>
    [
      `POST ${path} HTTP/1.1`,
      "Host: x",
      `X-Service-API-Key: ${KEY}`,
      `Content-Length: ${length}`,
      "",
      "",
    ].join("\r\n");

  test("on its way through cancels the call upstream", async () => {
    const started = Promise.withResolvers<IncomingMessage>();
    const { model, proxy } = await setup((request) => {
      request.on("error", () => {}).resume();
      started.resolve(request);
    });
    const { socket } = await openRaw(proxy.port);
    socket.write(`${head("/v1/files", 1000)}half`);
    const request = await started.promise;
    socket.destroy();
    await eventually(() => expect(model.sockets.size).toBe(0));
    expect(request.complete).toBe(false);
  });

  test("of a surface never reaches the model", async () => {
    let calls = 0;
    const { proxy } = await setup(() => {
      calls += 1;
    });
    const { socket } = await openRaw(proxy.port);
    socket.write(`${head("/v1/responses", 1000)}half`);
    await eventually(() => expect(proxy.room.bytes.used).toBe(4));
    socket.destroy();
    await eventually(() => expect([proxy.room.bytes.used, proxy.room.calls.used]).toEqual([0, 0]));
    expect(calls).toBe(0);
  });

  test("short by an early answer of the model doesn't harm the answer", async () => {
    const { proxy } = await setup((_, response) => {
      response.writeHead(413, { Connection: "close" }).end("too large");
    });
    const { socket, received } = await openRaw(proxy.port);
    socket.write(`${head("/v1/files", 50 * MEBIBYTE)}half`);
    await eventually(() => expect(received()).toContain("too large"));
    socket.destroy();
  });
});

describe("memory", () => {
  // Without a collection, buffers that nobody needs any more would count.
  setFlagsFromString("--expose-gc");
  const collect: unknown = runInNewContext("gc");
  const buffers = () => {
    if (typeof collect === "function") {
      collect();
    }
    return process.memoryUsage().arrayBuffers;
  };

  test.each([
    ["as a file", "/v1/files", { "Content-Length": "20000000" }],
    ["to a surface", "/v1/chat/completions", { "Content-Length": "20000000" }],
    // Their beginnings are read up to the limit, but all of them together hold no more than the budget.
    ["to a surface, in chunks", "/v1/chat/completions", { "Transfer-Encoding": "chunked" }],
  ])("20 MB %s that the model doesn't read yet cost less than 3 MB each", async (_, path, framing) => {
    const calls = 30;
    const body = Buffer.alloc(20 * 1000 * 1000, "x");
    const reading = Promise.withResolvers<void>();
    let started = 0;
    const { proxy } = await setup(async (request, response) => {
      started += 1;
      await reading.promise;
      response.end(String((await bodyOf(request)).length));
    });
    const beforeBytes = buffers();
    const sent: import("node:http").ClientRequest[] = [];
    const answers = Array.from(
      { length: calls },
      () =>
        new Promise<IncomingMessage>((resolve, reject) => {
          const options = { method: "POST", headers: { ...KEY_HEADERS, ...framing }, agent: false };
          const call = startRequest(proxy.url + path, options, resolve);
          sent.push(call);
          call.on("error", reject).end(body);
        }),
    );
    await eventually(() => expect(started).toBe(calls));
    await settled(() => sent.reduce((bytes, { socket }) => bytes + (socket?.bytesWritten ?? 0), 0));
    expect((buffers() - beforeBytes) / calls).toBeLessThan(3 * MEBIBYTE);
    reading.resolve();
    for (const answer of await Promise.all(answers)) {
      expect((await bodyOf(answer)).toString()).toBe(String(body.length));
    }
  });

  test("the body of a call isn't kept while its answer streams", async () => {
    const calls = 30;
    const body = Buffer.alloc(MEBIBYTE, " ");
    const { proxy } = await setup(
      async (request, response) => {
        await bodyOf(request);
        response.writeHead(200, { "Content-Type": "text/event-stream" }).write(chatStream(["a"])[0]);
      },
      { prepareCall: withSteps([]) },
    );
    const beforeBytes = buffers();
    // fetch would copy the body, and keep the copy.
    const answers = await Promise.all(
      Array.from(
        { length: calls },
        () =>
          new Promise<IncomingMessage>((resolve, reject) => {
            const options = { method: "POST", headers: KEY_HEADERS, agent: false };
            startRequest(`${proxy.url}/v1/chat/completions`, options, resolve).on("error", reject).end(body);
          }),
      ),
    );
    expect(proxy.openCalls.streams).toBe(calls);
    expect(proxy.room.bytes.used).toBe(0);
    await eventually(() => expect(buffers() - beforeBytes).toBeLessThan((calls / 4) * MEBIBYTE));
    for (const answer of answers) {
      answer.on("error", () => {}).destroy();
    }
  });

  test.each([
    ["a stream", "text/event-stream"],
    ["a file", "application/octet-stream"],
  ])("a slow reader of %s pauses the model", async (_, type) => {
    const event = Buffer.from(chatStream(["x".repeat(64 * 1024)])[0] ?? "");
    const events = 2000;
    let [passed, sentEvents] = [0, 0];
    const { proxy } = await setup(
      async (_, response) => {
        response.writeHead(200, { "Content-Type": type });
        for (; sentEvents < events; sentEvents += 1) {
          if (!response.write(event)) {
            await new Promise((resolve) => response.once("drain", resolve));
          }
        }
        response.end();
      },
      { prepareCall: withSteps([]) },
    );
    const beforeBytes = buffers();
    const answer = await new Promise<IncomingMessage>((resolve, reject) => {
      const options = { method: "POST", headers: KEY_HEADERS };
      startRequest(`${proxy.url}/v1/chat/completions`, options, resolve).on("error", reject).end(CHAT);
    });
    const stalledAt = await settled(() => sentEvents);
    // What the operating system holds for two connections.
    expect(stalledAt).toBeLessThan(400);
    expect(buffers() - beforeBytes).toBeLessThan(type === "text/event-stream" ? 8 * MEBIBYTE : 16 * MEBIBYTE);
    for await (const chunk of answer) {
      passed += chunk.length;
    }
    expect(passed).toBe(events * event.length);
  });
});

/**
 * The proxy before models' servers that break HTTP, or that use it to the utmost. It guards against answers that are changed or
 * never end, against memory without a bound, and against a step that ends twice or not at all.
 */
import { createServer, type Server, type Socket } from "node:net";
import { deflateSync, gzipSync } from "node:zlib";
import { eventually } from "@adrelay/testkit";
import { pino } from "pino";
import { afterEach, describe, expect, onTestFinished, test } from "vitest";
import {
  CHAT,
  chatStream,
  type Fixture,
  type FixtureOptions,
  KEY,
  KEY_HEADERS,
  type KeptStep,
  openRaw,
  startProxy,
  withSteps,
} from "./http-fixture.ts";

const open: { stop(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const part of open.splice(0).reverse()) {
    await part.stop();
  }
});

/** A server that handles each connection by hand. */
async function startRawModel(onConnection: (socket: Socket) => void): Promise<string> {
  const sockets = new Set<Socket>();
  const server: Server = createServer((socket) => {
    sockets.add(socket.on("error", () => {}));
    onConnection(socket);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  onTestFinished(() => {
    for (const socket of sockets) {
      socket.destroy();
    }
    server.close();
  });
  return `http://127.0.0.1:${Object(server.address()).port}`;
}

interface Setup {
  readonly proxy: Fixture;
  readonly steps: KeptStep[];
  readonly lines: { event: string; level: number; cause?: string; outcome?: string; status?: number }[];
}

async function setup(onConnection: (socket: Socket) => void, options: FixtureOptions = {}): Promise<Setup> {
  const steps: KeptStep[] = [];
  const lines: Setup["lines"] = [];
  const log = pino({ level: "debug" }, { write: (line: string) => lines.push(JSON.parse(line)) });
  const url = await startRawModel(onConnection);
  const proxy = await startProxy(url, { prepareCall: withSteps(steps), log, ...options });
  open.push(proxy);
  return { proxy, steps, lines };
}

/** Answers once the whole request has come. */
const answering =
  (answer: Buffer | string, thenEnd = true) =>
  (socket: Socket) => {
    let got = "";
    socket.on("data", (chunk) => {
      got += chunk.toString("latin1");
      if (got.includes('"hello"}]}')) {
        got = "";
        socket.write(answer);
        if (thenEnd) {
          socket.end();
        }
      }
    });
  };

const post = (proxy: Fixture, headers: Readonly<Record<string, string>> = {}) =>
  fetch(`${proxy.url}/v1/chat/completions`, {
    method: "POST",
    headers: { ...KEY_HEADERS, "content-type": "application/json", ...headers },
    body: CHAT,
  });

/** The error's code, or what came before the answer was cut. */
async function read(proxy: Fixture): Promise<{ status: number; text: string; isCut: boolean }> {
  const answer = await post(proxy);
  let text = "";
  try {
    for await (const piece of answer.body ?? []) {
      text += Buffer.from(piece).toString("latin1");
    }
  } catch {
    return { status: answer.status, text, isCut: true };
  }
  return { status: answer.status, text, isCut: false };
}

async function expectOneEnd({ steps, lines, proxy }: Setup, ends: readonly string[]): Promise<void> {
  await eventually(() => expect(steps.flatMap((step) => step.ends)).toHaveLength(steps.length));
  expect(steps.flatMap((step) => step.ends.map((one) => (one.kind === "ended" ? one.end : "")))).toEqual(
    ends,
  );
  await eventually(() =>
    expect(lines.filter(({ event }) => event === "proxy_call")).toHaveLength(steps.length),
  );
  expect(lines.filter(({ level, event }) => level >= 50 || event === "proxy_call_failed")).toEqual([]);
  expect(proxy.openCalls.streams).toBe(0);
  expect(proxy.room.calls.used).toBe(0);
  expect(proxy.room.bytes.used).toBe(0);
}

const SSE = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\n";
const EVENTS = chatStream(["Try ", "Fizz."]).join("");
const chunked = (text: string) => `${Buffer.byteLength(text).toString(16)}\r\n${text}\r\n`;

describe("an answer that HTTP doesn't allow", () => {
  test.each([
    ["no HTTP at all", "SSH-2.0-OpenSSH_9.6\r\n"],
    ["a zero byte in a header", "HTTP/1.1 200 OK\r\nX: a\0b\r\nContent-Length: 2\r\n\r\nok"],
    ["a header without a colon", "HTTP/1.1 200 OK\r\nbroken\r\n\r\n"],
    ["two different lengths", "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 3\r\n\r\nok!"],
    ["a negative length", "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\nok"],
    ["a head of 300 KB", `HTTP/1.1 200 OK\r\nX: ${"a".repeat(300_000)}\r\nContent-Length: 2\r\n\r\nok`],
    ["a status of four digits", "HTTP/1.1 2000 OK\r\nContent-Length: 2\r\n\r\nok"],
    ["a part of a head", "HTTP/1.1 200 OK\r\nContent-Le"],
    ["nothing", ""],
    [
      "a switch of protocols",
      "HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\nConnection: Upgrade\r\n\r\nraw",
    ],
  ])("because of %s gets 502 in the dialect's form", async (_, answer) => {
    const all = await setup(answering(answer));
    const { status, text } = await read(all.proxy);
    expect(status).toBe(502);
    expect(JSON.parse(text)).toMatchObject({ error: { message: expect.stringMatching(/^Adrelay: /) } });
    await expectOneEnd(all, ["cut"]);
  });

  test.each([
    ["fewer bytes than its length", `${SSE}Content-Length: 5000\r\n\r\n${EVENTS}`],
    ["half a chunk", `${SSE}Transfer-Encoding: chunked\r\n\r\n${chunked(EVENTS)}ffff\r\nhalf`],
    ["a chunk's size that is no number", `${SSE}Transfer-Encoding: chunked\r\n\r\n${chunked(EVENTS)}zz\r\nx`],
    ["no last chunk", `${SSE}Transfer-Encoding: chunked\r\n\r\n${chunked(EVENTS)}`],
  ])("because it has %s is cut behind what came, and its text counts", async (_, answer) => {
    const all = await setup(answering(answer));
    const { status, text, isCut } = await read(all.proxy);
    expect({ status, isCut }).toEqual({ status: 200, isCut: true });
    expect(text.startsWith(EVENTS)).toBe(true);
    await expectOneEnd(all, ["complete"]);
    expect(all.steps[0]?.text).toBe("Try Fizz.");
  });

  test("with a length and chunks isn't taken for two answers", async () => {
    const smuggled = `${SSE}Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n${chunked(EVENTS)}0\r\n\r\n`;
    const all = await setup(answering(smuggled));
    const { text } = await read(all.proxy);
    expect(text === EVENTS || text.includes("Adrelay: ")).toBe(true);
  });
});

describe("an answer that HTTP allows", () => {
  test.each([
    ["behind an unasked 100 Continue", "HTTP/1.1 100 Continue\r\n\r\n", ""],
    ["behind a flood of 20,000 of them", "HTTP/1.1 100 Continue\r\n\r\n".repeat(20_000), ""],
    [
      "behind a flood of 20,000 early hints",
      "HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n".repeat(20_000),
      "",
    ],
    [
      "behind an early hint whose link Node refuses",
      'HTTP/1.1 103 Early Hints\r\nLink: </a>; rel="preload prefetch"\r\n\r\n',
      "",
    ],
    ["with two equal lengths", "", `Content-Length: ${EVENTS.length}\r\n`],
    ["with a head of 100 KB", "", `X-Edge: ${"a".repeat(100_000)}\r\n`],
  ])("%s passes as it is", async (_, before, headers) => {
    const head = `${SSE}${headers}Content-Length: ${EVENTS.length}\r\n\r\n`;
    const all = await setup(answering(`${before}${head}${EVENTS}`));
    const socket = await openRaw(all.proxy.port);
    const request = ["POST /v1/chat/completions HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
    socket.socket.write(
      `${request.join("\r\n")}\r\nContent-Length: ${CHAT.length}\r\nConnection: close\r\n\r\n${CHAT}`,
    );
    await eventually(() => expect(socket.received().endsWith("data: [DONE]\n\n")).toBe(true));
    expect(socket.received().endsWith(`\r\n\r\n${EVENTS}`)).toBe(true);
    expect(socket.received().split("HTTP/1.1 103").length).toBeLessThan(20);
    socket.socket.destroy();
    await expectOneEnd(all, ["complete"]);
    expect(all.steps[0]?.text).toBe("Try Fizz.");
  });

  test("before the request was read is the caller's, and no body of it is left", async () => {
    const all = await setup((socket) => socket.once("data", () => socket.end(`${SSE}\r\n${EVENTS}`)), {
      editLimitBytes: 64 * 1024 * 1024,
    });
    const answer = await fetch(`${all.proxy.url}/v1/chat/completions`, {
      method: "POST",
      headers: KEY_HEADERS,
      body: JSON.stringify({ messages: [{ role: "user", content: "x".repeat(20_000_000) }] }),
    }).catch(() => undefined);
    if (answer?.status === 200) {
      expect(await answer.text().catch(() => EVENTS)).toBe(EVENTS);
    }
    await eventually(() => expect(all.proxy.room.bytes.used).toBe(0));
    expect(all.steps.flatMap((step) => step.ends)).toHaveLength(1);
  });

  test("in 10,000 chunks of one byte is read whole", async () => {
    const texts = Array.from({ length: 60 }, (_, at) => `word ${at} `);
    const events = chatStream(texts).join("");
    const body = [...events].map((one) => chunked(one)).join("");
    expect(events.length).toBeGreaterThan(7000);
    const all = await setup(answering(`${SSE}Transfer-Encoding: chunked\r\n\r\n${body}0\r\n\r\n`));
    expect(await read(all.proxy)).toEqual({ status: 200, text: events, isCut: false });
    await expectOneEnd(all, ["complete"]);
    expect(all.steps[0]?.text).toBe(texts.join(""));
  });
});

describe("an answer that would take all memory", () => {
  const MEBIBYTE = 1024 * 1024;
  const peakOf = async (work: () => Promise<unknown>) => {
    globalThis.gc?.();
    const before = process.memoryUsage().rss;
    let peak = before;
    const timer = setInterval(() => {
      peak = Math.max(peak, process.memoryUsage().rss);
    }, 5);
    await work();
    clearInterval(timer);
    return (peak - before) / MEBIBYTE;
  };

  test.each([
    ["gzip", gzipSync(Buffer.alloc(512 * MEBIBYTE, "a"), { level: 1 })],
    ["deflate", deflateSync(Buffer.alloc(256 * MEBIBYTE, ": x\n\n"))],
  ])(
    "because %s makes hundreds of megabytes of it passes as it is, and its reading is given up",
    async (encoding, bytes) => {
      const head = `${SSE}Content-Encoding: ${encoding}\r\nContent-Length: ${bytes.length}\r\n\r\n`;
      const all = await setup(answering(Buffer.concat([Buffer.from(head), bytes])));
      let got = 0;
      const peakMebibytes = await peakOf(async () => {
        const { socket } = await openRaw(all.proxy.port);
        socket.removeAllListeners("data").on("data", (chunk) => {
          got += chunk.length;
        });
        const request = ["POST /v1/chat/completions HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
        socket.write(
          `${request.join("\r\n")}\r\nContent-Length: ${CHAT.length}\r\nConnection: close\r\n\r\n${CHAT}`,
        );
        await eventually(() => expect(all.steps.flatMap((step) => step.ends)).toHaveLength(1), 20_000);
      });
      expect(got).toBeGreaterThanOrEqual(bytes.length);
      expect(peakMebibytes).toBeLessThan(200);
    },
    30_000,
  );

  test("because an event has 100 MB passes as it is, and its reading is given up", async () => {
    const piece = Buffer.alloc(MEBIBYTE, "a");
    const all = await setup((socket) => {
      socket.once("data", () => {
        socket.write(`${SSE}Connection: close\r\n\r\ndata: {"choices":[{"delta":{"content":"`);
        let sent = 0;
        const next = () => {
          while (sent < 100) {
            sent += 1;
            if (!socket.write(piece)) {
              socket.once("drain", next);
              return;
            }
          }
          socket.end();
        };
        next();
      });
    });
    let bytes = 0;
    const peakMebibytes = await peakOf(async () => {
      const answer = await post(all.proxy);
      for await (const chunk of answer.body ?? []) {
        bytes += chunk.length;
      }
    });
    expect(bytes).toBeGreaterThan(100 * MEBIBYTE);
    expect(peakMebibytes).toBeLessThan(200);
    await expectOneEnd(all, ["cut"]);
    expect(all.lines.filter(({ event }) => event === "copy_failed")).toMatchObject([
      { cause: "event_too_large" },
    ]);
  }, 20_000);

  test("because it never ends goes no faster than its slow caller takes it", async () => {
    let sent = 0;
    const event = Buffer.from(chatStream(["x".repeat(10_000)])[0] ?? "");
    const all = await setup(
      (socket) => {
        socket.once("data", () => {
          socket.write(`${SSE}\r\n`);
          const next = () => {
            while (!socket.destroyed) {
              sent += event.length;
              if (!socket.write(event)) {
                socket.once("drain", next);
                return;
              }
            }
          };
          next();
        });
      },
      { idleTimeoutMs: 500 },
    );
    const { socket } = await openRaw(all.proxy.port);
    socket.pause();
    const request = ["POST /v1/chat/completions HTTP/1.1", "Host: x", `X-Service-API-Key: ${KEY}`];
    socket.write(`${request.join("\r\n")}\r\nContent-Length: ${CHAT.length}\r\n\r\n${CHAT}`);
    await eventually(() => expect(all.steps.flatMap((step) => step.ends)).toHaveLength(1), 10_000);
    expect(sent).toBeLessThan(32 * MEBIBYTE);
    await expectOneEnd(all, ["cut"]);
    expect(all.lines.find(({ event: name }) => name === "proxy_call")).toMatchObject({ outcome: "idle" });
    socket.destroy();
  });
});

test.each([
  ["while the request is read", (socket: Socket) => socket.once("data", () => socket.resetAndDestroy()), 502],
  [
    "within the head",
    (socket: Socket) =>
      socket.once("data", () => socket.write("HTTP/1.1 200", () => socket.resetAndDestroy())),
    502,
  ],
  [
    "within the body",
    (socket: Socket) =>
      socket.once("data", () =>
        socket.write(`${SSE}Transfer-Encoding: chunked\r\n\r\n${chunked(EVENTS.slice(0, 200))}`, () =>
          setTimeout(() => socket.resetAndDestroy(), 50),
        ),
      ),
    200,
  ],
  [
    "within an answer that ends with its connection",
    (socket: Socket) =>
      socket.once("data", () =>
        socket.write(`${SSE}Connection: close\r\n\r\n${EVENTS.slice(0, 200)}`, () =>
          setTimeout(() => socket.resetAndDestroy(), 50),
        ),
      ),
    200,
  ],
])("a reset %s is told to the caller, and the step ends once", async (_, onConnection, status) => {
  const all = await setup(onConnection);
  const answer = await read(all.proxy);
  expect(answer.status).toBe(status);
  expect(answer.isCut).toBe(status === 200);
  await expectOneEnd(all, ["cut"]);
});

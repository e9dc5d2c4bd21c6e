/**
 * Guards the memory of a proxy: it stays within its container, whatever callers and models' servers do. The process has the
 * image's settings of memory.
 */
import { once } from "node:events";
import { readFileSync } from "node:fs";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { type AddressInfo, connect, type Socket } from "node:net";
import { API_KEY_HEADER } from "@adrelay/contract";
import { containerMemorySettings, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  eventually,
  fetchMetrics,
  type ScriptedProvider,
  startApp,
  startScriptedProvider,
  sumOf,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

/** As docker-compose.yml has it. */
const MEMORY_MAX_MIB = 512;
const STREAMS = 500;
/** If all of them asked for their ads at once, a busy machine would be too slow for many. */
const AT_ONCE = 50;
/** Together they write more text than PROXY_JOURNAL_BYTES. */
const SLOW_READERS = 150;
const UPLOADS = 30;
/** Of the longest bodies with ads, so many find room at the same time. */
const LARGE_AT_ONCE = 3;
const MEBIBYTE = 1024 * 1024;

let redis: TestRedis;
let provider: ScriptedProvider;
let model: Server;
let proxy: AppProcess;
const sockets = new Set<Socket>();
/** Uploads that the model reads only when it is told to. */
const unread: (() => void)[] = [];

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  model = createServer((request, response) => {
    request.on("error", () => {});
    PLANS[String(request.headers["x-plan"])]?.(
      request,
      response.on("error", () => {}),
    );
  }).listen(0, "127.0.0.1");
  await once(model, "listening");
  // It listens on a port, not on a path.
  const { port } = model.address() as AddressInfo;
  proxy = await startApp("proxy", {
    REDIS_URL: redis.url,
    PROVIDER_URL: provider.url,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    API_KEYS: TEST_API_KEY,
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    PROXY_DRAIN_MS: "0",
    OPENAI_BASE_URL: `http://127.0.0.1:${port}/v1`,
    PROXY_INJECTION_TIMEOUT_MS: "30000",
    QUOTA_INJECTIONS_IN_FLIGHT: "off",
    ...containerMemorySettings(MEMORY_MAX_MIB),
  });
});
afterEach(async () => {
  for (const socket of sockets) {
    socket.destroy();
  }
  await eventually(async () => expect(await metric("adrelay_in_flight_calls")).toBe(0), 30_000);
});
afterAll(async () => {
  await proxy.stop();
  model.closeAllConnections();
  model.close();
  await Promise.all([provider.close(), redis.dispose()]);
});

const eventOf = (content: string) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta: { content } }] })}\n\n`;
const TEXT = eventOf("forty characters are one event, as usual").repeat(100);
const MUCH_TEXT = eventOf("x".repeat(10_000));
const SSE = { "content-type": "text/event-stream" };

/** What the model's server does with a call. */
const PLANS: Record<string, (request: IncomingMessage, response: ServerResponse) => void> = {
  hold: (request, response) => {
    request.resume().once("end", () => response.writeHead(200, SSE).write(TEXT));
  },
  flood: (request, response) => {
    request.resume();
    const write = () => {
      while (!response.destroyed && response.write(MUCH_TEXT)) {}
    };
    response.writeHead(200, SSE).on("drain", write);
    write();
  },
  upload: (request, response) => {
    unread.push(() => request.resume().once("end", () => response.end("{}")));
  },
};

const message = (content: string) =>
  JSON.stringify({
    model: "m",
    stream: true,
    messages: [
      { role: "user", content: "Which shoes?" },
      { role: "system", content },
    ],
  });

interface Sent {
  readonly plan: string;
  readonly body: string | Buffer;
  readonly framing?: "length" | "chunks";
}

/** Sends a call on a connection of its own. Resolves to the head of the answer; empty if there is none. */
function send({ plan, body, framing = "length" }: Sent): {
  readonly socket: Socket;
  readonly head: Promise<string>;
} {
  const socket = connect(Number(proxy.listening["port"]), "127.0.0.1");
  sockets.add(socket.on("error", () => {}).once("close", () => sockets.delete(socket)));
  const bytes = Buffer.byteLength(body);
  const lines = [
    "POST /v1/chat/completions HTTP/1.1",
    "Host: proxy",
    `${API_KEY_HEADER}: ${TEST_API_KEY}`,
    "X-Adrelay-Session-Id: session",
    "X-Adrelay-User-Agent: agent",
    "X-Adrelay-User-IP: 203.0.113.7",
    `X-Plan: ${plan}`,
    framing === "length" ? `Content-Length: ${bytes}` : "Transfer-Encoding: chunked",
  ];
  socket.write(`${lines.join("\r\n")}\r\n\r\n`);
  if (framing === "chunks") {
    socket.write(`${bytes.toString(16)}\r\n`);
  }
  socket.write(body);
  if (framing === "chunks") {
    socket.write("\r\n0\r\n\r\n");
  }
  const head = new Promise<string>((resolve) => {
    socket.once("data", (answer) => resolve(answer.toString("latin1").split("\r\n\r\n")[0] ?? ""));
    socket.once("close", () => resolve(""));
  });
  return { socket, head };
}

async function metric(name: string): Promise<number> {
  return sumOf(await fetchMetrics(`http://127.0.0.1:${proxy.listening["ops_port"]}`), name);
}

/** The most memory that the proxy has had since its start. */
function peakMebibytes(): number {
  const status = readFileSync(`/proc/${proxy.pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]) / 1024;
}

const injected = (heads: readonly string[]) =>
  heads.filter((head) => head.includes("X-Adrelay-Ad: injected")).length;

/** Turns that a busy Redis may have opened too late for their calls. A worker would end them, and none runs here. */
let openedLate = 0;

async function untilTurnsEnd(heads: readonly string[]): Promise<void> {
  openedLate += heads.filter((head) => head.includes("reason=not_booked")).length;
  await eventually(
    async () => expect(await metric("adrelay_turns_open")).toBeLessThanOrEqual(openedLate),
    60_000,
  );
}

describe.runIf(process.platform === "linux")("a proxy of 512 MB holds", () => {
  test("streams with ads that are cut at once", async () => {
    const heads: string[] = [];
    while (heads.length < STREAMS) {
      const calls = Array.from({ length: AT_ONCE }, () => send({ plan: "hold", body: message("short") }));
      heads.push(...(await Promise.all(calls.map(({ head }) => head))));
    }
    expect(injected(heads)).toBeGreaterThan(STREAMS / 2);
    for (const socket of sockets) {
      socket.destroy();
    }
    await untilTurnsEnd(heads);
    expect(peakMebibytes()).toBeLessThan(MEMORY_MAX_MIB);
  });

  test("endless answers whose readers take nothing", async () => {
    const calls = Array.from({ length: SLOW_READERS }, () => send({ plan: "flood", body: message("short") }));
    const heads = await Promise.all(
      calls.map(async ({ socket, head }) => {
        const text = await head;
        socket.pause();
        return text;
      }),
    );
    expect(injected(heads)).toBeGreaterThan(0);
    // From now on no more text is kept.
    await eventually(
      async () => expect(await metric("adrelay_turns_lost_text_total")).toBeGreaterThan(0),
      30_000,
    );
    for (const socket of sockets) {
      socket.destroy();
    }
    await untilTurnsEnd(heads);
    expect(peakMebibytes()).toBeLessThan(MEMORY_MAX_MIB);
  });

  test.each(["length", "chunks"] as const)("bodies of 20 MB by their %s", async (framing) => {
    const body = message("x".repeat(20_000_000));
    const calls = Array.from({ length: UPLOADS }, () => send({ plan: "upload", body, framing }));
    await eventually(() => expect(unread).toHaveLength(UPLOADS), 30_000);
    for (const read of unread.splice(0)) {
      read();
    }
    const heads = await Promise.all(calls.map(({ head }) => head));
    expect(heads.filter((head) => head.startsWith("HTTP/1.1 200"))).toHaveLength(UPLOADS);
    expect(peakMebibytes()).toBeLessThan(MEMORY_MAX_MIB);
  });

  test("bodies of 8 MB with ads", async () => {
    const body = message("x".repeat(8 * MEBIBYTE - 1000));
    let count = 0;
    while (count < UPLOADS) {
      const calls = Array.from({ length: LARGE_AT_ONCE }, () => send({ plan: "hold", body }));
      const heads = await Promise.all(calls.map(({ head }) => head));
      expect(injected(heads)).toBeGreaterThan(0);
      count += heads.length;
    }
    expect(peakMebibytes()).toBeLessThan(MEMORY_MAX_MIB);
  });
});

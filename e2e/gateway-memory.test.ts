/**
 * Guards against one publisher that fills the gateway's memory, or takes it from another one. Each test sends hundreds of
 * megabytes, or thousands of requests, with the key of one publisher. Meanwhile another one sends a few.
 */
import { readFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { ACKNOWLEDGE_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { containerMemorySettings, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  callerKeyOf,
  eventually,
  fetchMetrics,
  type PublishersFile,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  unknownId,
  writePublishersFile,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";

const MEMORY_MAX_MIB = 256;
const MEMORY_MAX_KB = MEMORY_MAX_MIB * 1024;
const MEGABYTE = 1_000_000;
const PEERS = 300;
const WAITING = 40;
/** An acknowledgment counts fourfold until Redis has it, so more of them wouldn't fit into the publisher's share. */
const WAITING_AT_ONCE = 4;
const PIPELINING = 100;
/** QUOTA_BYTES_IN_FLIGHT of GATEWAY_BYTES_IN_FLIGHT, by default. */
const SHARE_BYTES = 16 * 1024 * 1024;
const FEW_REQUESTS = "quotas: { requests_per_second: 5, burst: 50 }";
let redis: TestRedis;
let client: Redis;
let stack: RelayStack;
let calm: RelayCaller;
let calmProvider: ScriptedProvider;
let deafProvider: Server;
let file: PublishersFile;
const sockets = new Set<Socket>();

beforeAll(async () => {
  [redis, calmProvider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  client = new Redis(redis.url);
  // It reads everything, keeps nothing and never answers.
  deafProvider = createServer((socket) => keep(socket).resume());
  await new Promise<void>((resolve) => deafProvider.listen(0, "127.0.0.1", resolve));
  const deafUrl = `http://127.0.0.1:${Object(deafProvider.address()).port}`;
  file = writePublishersFile([
    { id: "greedy", providerUrl: deafUrl, keyEnv: "PROVIDER_KEY" },
    { id: "hasty", providerUrl: deafUrl, keyEnv: "PROVIDER_KEY", more: FEW_REQUESTS },
    { id: "calm", providerUrl: calmProvider.url, keyEnv: "PROVIDER_KEY" },
  ]);
  stack = await startRelayStack({
    redis,
    providerUrl: "http://127.0.0.1:9",
    env: {
      API_KEYS: "",
      PUBLISHERS_FILE: file.path,
      PROVIDER_KEY: "key",
      QUOTA_UNKNOWN_BYTES: "off",
      // It would refuse most before it fills anything.
      QUOTA_BYTES_PER_SECOND: "off",
      ...containerMemorySettings(MEMORY_MAX_MIB),
    },
  });
  calm = relayCaller(stack.gatewayUrl, callerKeyOf("calm"));
});
afterEach(async () => {
  closeSockets();
  await eventually(async () => expect(await inFlightBytes()).toBe(0));
});
afterAll(async () => {
  closeSockets();
  await stack.stop();
  deafProvider.close();
  await calmProvider.close();
  client.disconnect();
  await redis.dispose();
  file.remove();
});

function keep(socket: Socket): Socket {
  sockets.add(socket.on("error", () => {}).once("close", () => sockets.delete(socket)));
  return socket;
}

function closeSockets(): void {
  for (const socket of sockets) {
    socket.destroy();
  }
}

const LONG_INJECTION = Buffer.from(JSON.stringify({ prompt: "x".repeat(MEGABYTE) }));

interface Sent {
  readonly body: Buffer;
  /** Only so many bytes of the body are sent. */
  readonly sentBytes?: number;
  readonly headers?: string;
}

/** Opens connections of the greedy publisher and sends the same on each. Resolves to the answers' first lines. */
function sendMany(count: number, path: string, make: () => Sent): Promise<string>[] {
  const answers: Promise<string>[] = [];
  for (let peer = 0; peer < count; peer += 1) {
    const { body, sentBytes = body.length, headers = "" } = make();
    const socket = keep(connect(Number(new URL(stack.gatewayUrl).port), "127.0.0.1"));
    socket.write(
      `POST ${path} HTTP/1.1\r\nHost: gateway\r\n${API_KEY_HEADER}: ${callerKeyOf("greedy")}\r\n` +
        `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n${headers}\r\n`,
    );
    socket.write(body.subarray(0, sentBytes));
    answers.push(firstAnswer(socket));
  }
  return answers;
}

/** The head of the first answer; empty if the connection closes without one. */
function firstAnswer(socket: Socket): Promise<string> {
  return new Promise((resolve) => {
    socket.once("data", (bytes) => resolve(bytes.toString("latin1").split("\r\n\r\n")[0] ?? ""));
    socket.once("close", () => resolve(""));
  });
}

/** The most memory that the gateway has had since its start. */
function peakMemoryKb(): number {
  const status = readFileSync(`/proc/${stack.apps.get("gateway")?.pid}/status`, "utf8");
  return Number(/^VmHWM:\s+(\d+) kB/m.exec(status)?.[1]);
}

async function inFlightBytes(): Promise<number> {
  return sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_in_flight_bytes");
}

/** How many acknowledgments of a publisher the ledger has as queued. */
async function queuedOf(publisher: string): Promise<number> {
  return Number(await client.hget("{adrelay:0}:gauges", `${publisher}|queued`));
}

function longAcknowledgment() {
  const fields = { ad_response_id: unknownId(), llm_response: "x".repeat(MEGABYTE) };
  return { body: Buffer.from(JSON.stringify(fields)), headers: "Prefer: wait=30\r\n" };
}

/** Repeats an acknowledgment after each 503, which Redis on a loaded machine may cause. */
function sendUntilAccepted(acknowledgment: Sent): void {
  for (const answer of sendMany(1, ACKNOWLEDGE_PATH, () => acknowledgment)) {
    void answer.then((head) => {
      if (head.startsWith("HTTP/1.1 503 ")) {
        sendUntilAccepted(acknowledgment);
      }
    });
  }
}

/** Looks up unknown ids, one after the other, with the key of the hasty publisher. */
async function sendLookUps(count: number) {
  const hasty = relayCaller(stack.gatewayUrl, callerKeyOf("hasty"));
  const answers = [];
  while (answers.length < count) {
    const { status, headers, body } = await hasty.lookUp(unknownId());
    answers.push({ ...body, status, retryAfter: headers.get("retry-after") });
  }
  return answers;
}

/** The calm publisher sends some injections and acknowledges them. Each must be served as if it were alone. */
async function serveCalm(): Promise<void> {
  for (let call = 0; call < 5; call += 1) {
    const injected = await calm.inject({ headers: { "X-Adrelay-Timeout-Ms": "10000" } });
    expect(injected.headers.get("x-adrelay-fallback")).toBeNull();
    expect(injected.status).toBe(200);
    const acknowledged = await calm.acknowledgeUntilAccepted(injected.body["ad_response_id"], "text", {
      headers: { Prefer: "wait=10" },
    });
    expect(acknowledged.text).toContain('"ok"');
    const ready = await fetch(`${stack.gatewayOpsUrl}/readyz`, { signal: AbortSignal.timeout(10_000) });
    expect(ready.status).toBe(200);
    await ready.text();
  }
}

/** The answers of the kind that injections over a limit get. */
const overloadedOf = (heads: readonly string[]) =>
  heads.filter((head) => /^HTTP\/1\.1 202 /.test(head) && /X-Adrelay-Fallback: overloaded/i.test(head));

describe.runIf(process.platform === "linux")("while one publisher sends all it can", () => {
  test("long injections at a provider that hangs get fallbacks, and fill no memory", async () => {
    const answers = sendMany(PEERS, INJECTION_PATH, () => ({ body: LONG_INJECTION }));
    await serveCalm();
    const heads = await Promise.all(answers);
    expect(heads.filter((head) => /^HTTP\/1\.1 202 /.test(head))).toHaveLength(PEERS);
    expect(overloadedOf(heads).length).toBeGreaterThan(PEERS / 2);
    expect(peakMemoryKb()).toBeLessThan(MEMORY_MAX_KB);
  });

  test("uploads that stop halfway hold no more than their publisher's share", async () => {
    const answers = sendMany(PEERS, INJECTION_PATH, () => ({ body: LONG_INJECTION, sentBytes: 100_000 }));
    await eventually(async () => expect(await inFlightBytes()).toBeGreaterThan(SHARE_BYTES * 0.9));
    await serveCalm();
    expect(await inFlightBytes()).toBeLessThanOrEqual(SHARE_BYTES);
    closeSockets();
    expect(overloadedOf(await Promise.all(answers)).length).toBeGreaterThan(PEERS / 2);
    expect(peakMemoryKb()).toBeLessThan(MEMORY_MAX_KB);
  });

  test("acknowledgments that wait for their outcomes hold no text", async () => {
    for (let sent = 0; sent < WAITING; sent += WAITING_AT_ONCE) {
      for (let call = 0; call < WAITING_AT_ONCE; call += 1) {
        sendUntilAccepted(longAcknowledgment());
      }
      await eventually(async () => expect(await queuedOf("greedy")).toBe(sent + WAITING_AT_ONCE));
      // Redis has them before the gateway knows it, and until then they count.
      await eventually(async () => expect(await inFlightBytes()).toBe(0));
    }
    await eventually(async () => {
      const samples = await fetchMetrics(stack.gatewayOpsUrl);
      expect(samples.get("adrelay_in_flight_bytes")).toBe(0);
      expect(samples.get("adrelay_in_flight_calls")).toBe(WAITING);
    });
    await serveCalm();
    expect(peakMemoryKb()).toBeLessThan(MEMORY_MAX_KB);
  });

  test("requests without a key that don't wait for their answers fill no memory", async () => {
    const block = Buffer.from("GET / HTTP/1.1\r\nHost: h\r\n\r\n".repeat(2000));
    for (let peer = 0; peer < PIPELINING; peer += 1) {
      const socket = keep(connect(Number(new URL(stack.gatewayUrl).port), "127.0.0.1")).pause();
      for (let sent = 0; sent < 100; sent += 1) {
        socket.write(block);
      }
    }
    await serveCalm();
    expect(peakMemoryKb()).toBeLessThan(MEMORY_MAX_KB);
  });

  test("a flood of small requests is refused to this publisher alone", async () => {
    const flood = Array.from({ length: 10 }, () => sendLookUps(20));
    await serveCalm();
    const answers = (await Promise.all(flood)).flat();
    const refused = answers.filter(({ status }) => status === 429);
    expect(answers.filter(({ status }) => status !== 404 && status !== 429)).toEqual([]);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]).toMatchObject({ code: "rate_limited", quota: "requests_per_second", retryAfter: "1" });
    const samples = await fetchMetrics(stack.gatewayOpsUrl);
    const met = { publisher: "hasty", quota: "requests_per_second" };
    expect(sumOf(samples, "adrelay_quota_refused_total", met)).toBe(refused.length);
    expect(sumOf(samples, "adrelay_quota_refused_total", { publisher: "calm" })).toBe(0);
  });
});

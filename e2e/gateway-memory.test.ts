/**
 * Guards against one publisher that fills the gateway's memory, or takes it from another one. Each test sends a thousand
 * megabytes, or thousands of requests, with the key of one publisher. Meanwhile another one sends a few.
 */
import { readFileSync } from "node:fs";
import { connect, createServer, type Server, type Socket } from "node:net";
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
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
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";

const MEMORY_MAX_KB = 256 * 1024;
const MEGABYTE = 1_000_000;
const PEERS = 1000;
/** How many bytes of bodies are in memory at once under each abuse, and all of their copies. */
const IN_FLIGHT_MAX_BYTES = 32 * 1024 * 1024;

let redis: TestRedis;
let stack: RelayStack;
let calm: RelayCaller;
let calmProvider: ScriptedProvider;
let deafProvider: Server;
let file: PublishersFile;
const sockets = new Set<Socket>();

beforeAll(async () => {
  [redis, calmProvider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  // It reads everything, keeps nothing and never answers.
  deafProvider = createServer((socket) => keep(socket).resume());
  await new Promise<void>((resolve) => deafProvider.listen(0, "127.0.0.1", resolve));
  const deafUrl = `http://127.0.0.1:${Object(deafProvider.address()).port}`;
  file = writePublishersFile([
    { id: "greedy", providerUrl: deafUrl, keyEnv: "PROVIDER_KEY" },
    { id: "calm", providerUrl: calmProvider.url, keyEnv: "PROVIDER_KEY" },
  ]);
  stack = await startRelayStack({
    redis,
    providerUrl: "http://127.0.0.1:9",
    env: { API_KEYS: "", PUBLISHERS_FILE: file.path, PROVIDER_KEY: "key", QUOTA_UNKNOWN_BYTES: "off" },
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

const BODY = Buffer.from(JSON.stringify({ prompt: "x".repeat(MEGABYTE) }));

/** Opens connections of the greedy publisher and sends the same on each. Resolves to the answers' first lines. */
function sendMany(
  count: number,
  path: string,
  make: () => { body: Buffer; sentBytes?: number; headers?: string },
) {
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

function memoryKb(name: "VmRSS" | "VmHWM"): number {
  const status = readFileSync(`/proc/${stack.apps.get("gateway")?.pid}/status`, "utf8");
  return Number(new RegExp(`^${name}:\\s+(\\d+) kB`, "m").exec(status)?.[1]);
}

async function inFlightBytes(): Promise<number> {
  return sumOf(await fetchMetrics(stack.gatewayOpsUrl), "adrelay_in_flight_bytes");
}

/** The calm publisher sends some injections and acknowledges them. Each must be served as if it were alone. */
async function serveCalm(): Promise<void> {
  for (let call = 0; call < 20; call += 1) {
    const injected = await calm.inject({ headers: { "X-Adrelay-Timeout-Ms": "10000" } });
    expect(injected.headers.get("x-adrelay-fallback")).toBeNull();
    expect(injected.status).toBe(200);
    const acknowledged = await calm.acknowledge(injected.body["ad_response_id"], "text", {
      headers: { Prefer: "wait=10" },
    });
    expect(acknowledged.text).toContain('"ok"');
    const ready = await fetch(`${stack.gatewayOpsUrl}/readyz`, { signal: AbortSignal.timeout(10_000) });
    expect(ready.status).toBe(200);
    await ready.text();
  }
}

test.runIf(process.platform === "linux")(
  "long injections at a provider that hangs fill no memory",
  async () => {
    const answers = sendMany(PEERS, INJECTION_PATH, () => ({ body: BODY }));
    await serveCalm();
    const heads = await Promise.all(answers);
    console.log(
      "A",
      memoryKb("VmHWM"),
      memoryKb("VmRSS"),
      heads.filter((h) => h.includes("overloaded")).length,
      heads.filter((h) => h.includes("timeout")).length,
    );
    expect(heads.filter((head) => /^HTTP\/1\.1 202 /.test(head))).toHaveLength(PEERS);
    expect(heads.filter((head) => /X-Adrelay-Fallback: overloaded/i.test(head)).length).toBeGreaterThan(
      PEERS / 2,
    );
    expect(memoryKb("VmHWM")).toBeLessThan(MEMORY_MAX_KB);
  },
);

test.runIf(process.platform === "linux")(
  "uploads that stop halfway hold no more than what fits",
  async () => {
    const answers = sendMany(PEERS, INJECTION_PATH, () => ({ body: BODY, sentBytes: 100_000 }));
    await eventually(async () => expect(await inFlightBytes()).toBeGreaterThan(IN_FLIGHT_MAX_BYTES / 3));
    await serveCalm();
    console.log("C", memoryKb("VmHWM"), memoryKb("VmRSS"), await inFlightBytes());
    closeSockets();
    const heads = await Promise.all(answers);
    expect(heads.filter((head) => /X-Adrelay-Fallback: overloaded/i.test(head)).length).toBeGreaterThan(
      PEERS / 2,
    );
    expect(memoryKb("VmHWM")).toBeLessThan(MEMORY_MAX_KB);
  },
);

test.runIf(process.platform === "linux")("acknowledgments that wait hold no text", async () => {
  const WAITING = 400;
  const waiting: Promise<string>[] = [];
  for (let sent = 0; sent < WAITING; sent += 2) {
    waiting.push(
      ...sendMany(2, ACKNOWLEDGE_PATH, () => ({
        body: Buffer.from(
          JSON.stringify({ ad_response_id: unknownId(), llm_response: "x".repeat(MEGABYTE) }),
        ),
        headers: "Prefer: wait=30\r\n",
      })),
    );
    await eventually(async () => expect(await inFlightBytes()).toBe(0));
  }
  await serveCalm();
  const samples = await fetchMetrics(stack.gatewayOpsUrl);
  console.log(
    "B",
    memoryKb("VmHWM"),
    memoryKb("VmRSS"),
    sumOf(samples, "adrelay_in_flight_calls"),
    sumOf(samples, "adrelay_acknowledgments", { publisher: "greedy", state: "queued" }),
  );
  expect(memoryKb("VmHWM")).toBeLessThan(MEMORY_MAX_KB);
  expect(waiting).toHaveLength(WAITING);
});

test.runIf(process.platform === "linux")(
  "a flood of small requests is refused to its publisher alone",
  async () => {
    const lookUp = async () => {
      const answer = await fetch(`${stack.gatewayUrl}${ACKNOWLEDGMENTS_PATH}${unknownId()}/`, {
        headers: { [API_KEY_HEADER]: callerKeyOf("greedy") },
      });
      await answer.text();
      return answer;
    };
    const flood = Array.from({ length: 50 }, async () => {
      const answers: Response[] = [];
      while (answers.length < 100) {
        answers.push(await lookUp());
      }
      return answers;
    });
    await serveCalm();
    const answers = (await Promise.all(flood)).flat();
    const refused = answers.filter(({ status }) => status === 429);
    console.log("D", memoryKb("VmHWM"), memoryKb("VmRSS"), refused.length);
    expect(refused.length).toBeGreaterThan(0);
    expect(refused[0]?.headers.get("retry-after")).toBe("1");
  },
);

/**
 * Connections that send nothing use up the descriptors of a process. Each listener of each app must be free again soon,
 * although its peers close nothing.
 */
import { once } from "node:events";
import { connect, type Socket } from "node:net";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppName,
  type AppProcess,
  eventually,
  relayCaller,
  startApp,
  startScriptedProvider,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, onTestFinished, test } from "vitest";

const DESCRIPTORS_MAX = 512;
const PEERS = 600;
/** The time limit for headers, a moment to read the refusal, and the time that a busy machine needs. */
const FREE_AGAIN_MS = 30_000;

let redis: TestRedis;
const apps: AppProcess[] = [];
const peers: Socket[] = [];
beforeAll(async () => {
  redis = await startTestRedis();
});
afterAll(async () => {
  for (const peer of peers) {
    peer.destroy();
  }
  for (const app of apps) {
    app.kill("SIGKILL");
    await app.exited;
  }
  await redis.dispose();
});

async function start(name: AppName, env: Readonly<Record<string, string>> = {}): Promise<AppProcess> {
  const settings = {
    REDIS_URL: redis.url,
    API_KEYS: TEST_API_KEY,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    AD_SERVER_API_KEYS: TEST_PROVIDER_KEY,
    GATEWAY_PORT: "0",
    GATEWAY_OPS_PORT: "0",
    WORKER_OPS_PORT: "0",
    AD_SERVER_PORT: "0",
    ...env,
  };
  const app = await startApp(name, settings, { descriptorsMax: DESCRIPTORS_MAX });
  apps.push(app);
  return app;
}

/** A peer that sends these bytes and then neither sends, nor reads, nor closes. */
function openPeer(port: number, bytes: string): Socket {
  const socket = connect({ port, host: "127.0.0.1", allowHalfOpen: true });
  socket.on("error", () => {});
  socket.pause();
  socket.write(bytes);
  peers.push(socket);
  return socket;
}

const LISTENERS = [
  { app: "gateway", port: "port", path: "/" },
  { app: "gateway", port: "ops_port", path: "/healthz" },
  { app: "worker", port: "ops_port", path: "/healthz" },
  { app: "ad-server", port: "port", path: "/" },
] as const;

describe.concurrent("a process without descriptors recovers by itself", () => {
  test.each(LISTENERS)("at the $port of the $app", async ({ app: name, port: portName, path }) => {
    const app = await start(name);
    const port = Number(app.listening[portName]);
    const opened = Array.from({ length: PEERS }, (_, at) => openPeer(port, at % 2 === 0 ? "" : "GET / HT"));
    await Promise.all(opened.map((peer) => Promise.race([once(peer, "connect"), once(peer, "close")])));
    await eventually(async () => {
      const answer = await fetch(`http://127.0.0.1:${port}${path}`, { signal: AbortSignal.timeout(1000) });
      expect(answer.status).toBe(path === "/" ? 404 : 200);
    }, FREE_AGAIN_MS);
    expect(app.logs.filter(({ level }) => level === "fatal")).toEqual([]);
    expect(await app.stop()).toBe(0);
  });
});

test("after silent peers a gateway still serves its callers", async () => {
  const provider = await startScriptedProvider();
  onTestFinished(() => provider.close());
  const app = await start("gateway", { PROVIDER_URL: provider.url });
  const port = Number(app.listening["port"]);
  Array.from({ length: PEERS }, () => openPeer(port, ""));
  await eventually(
    async () => expect((await relayCaller(`http://127.0.0.1:${port}`).inject()).status).toBe(200),
    FREE_AGAIN_MS,
  );
});

test("a gateway with half a header under way stops within seconds", async () => {
  const app = await start("gateway");
  const peer = openPeer(Number(app.listening["port"]), "POST /api/ad-injection/start/ HTTP/1.1\r\nX-Half: ");
  await once(peer, "connect");
  const startedAtMs = performance.now();
  expect(await app.stop()).toBe(0);
  expect(performance.now() - startedAtMs).toBeLessThan(8000);
});

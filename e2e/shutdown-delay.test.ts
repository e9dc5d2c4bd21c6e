/** Between a signal and the stop, a process with a public listener goes on serving, while readiness already fails. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { request as httpRequest } from "node:http";
import { fileURLToPath } from "node:url";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  eventually,
  relayCaller,
  type ScriptedProvider,
  startApp,
  startScriptedProvider,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
} from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const SHUTDOWN_DELAY_MS = 3000;
/** So long that a test which waited for its end would time out. */
const LONG_DELAY_MS = 600_000;

let redis: TestRedis;
let provider: ScriptedProvider;
beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
});
afterAll(async () => {
  await provider.close();
  await redis.dispose();
});

const APPS = [
  { name: "gateway", readyPath: "/readyz" },
  { name: "gateway", readyPath: "/readyz/injections" },
  { name: "ad-server", readyPath: "/readyz" },
] as const;

/** Starts an app, and says where it serves injections and tells whether it is ready. */
async function start({ name, readyPath }: (typeof APPS)[number], delayMs: number) {
  const app = await startApp(name, {
    REDIS_URL: redis.url,
    PROVIDER_URL: provider.url,
    API_KEYS: TEST_API_KEY,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    AD_SERVER_API_KEYS: TEST_API_KEY,
    GATEWAY_PORT: "0",
    GATEWAY_OPS_PORT: "0",
    AD_SERVER_PORT: "0",
    SHUTDOWN_DELAY_MS: String(delayMs),
  });
  const urlOf = (port: string) => `http://127.0.0.1:${app.listening[port]}`;
  return { app, url: urlOf("port"), readyUrl: `${urlOf("ops_port")}${readyPath}` };
}

const readinessOf = async (url: string) => {
  const answer = await fetch(url);
  return { status: answer.status, body: await answer.json() };
};

/** The header Connection of an answer on a connection that both ends would keep. `fetch` doesn't show it. */
function connectionHeaderOf(url: string): Promise<string | undefined> {
  return new Promise((resolve, reject) => {
    const request = httpRequest(url, (response) => {
      response.resume();
      resolve(response.headers.connection);
    });
    request.setHeader("Connection", "keep-alive").on("error", reject).end();
  });
}

/** Sends requests until the app has ended; returns the statuses of those that were sent while it was listening. */
async function callUntilStopping(app: AppProcess, url: string): Promise<number[]> {
  const statuses: number[] = [];
  const endsAtMs = performance.now() + SHUTDOWN_DELAY_MS * 0.8;
  app.kill("SIGTERM");
  while (performance.now() < endsAtMs) {
    const { status } = await relayCaller(url).inject();
    statuses.push(status);
  }
  return statuses;
}

describe.concurrent("between SIGTERM and the stop", () => {
  test.each(APPS)("no call to the $name is refused, and $readyPath fails", async (options) => {
    const { app, url, readyUrl } = await start(options, SHUTDOWN_DELAY_MS);
    expect(await connectionHeaderOf(url)).toBe("keep-alive");
    const statuses = callUntilStopping(app, url);
    await eventually(async () => expect((await readinessOf(readyUrl)).status).toBe(503), 2000);
    expect((await readinessOf(readyUrl)).body).toMatchObject({ status: "not_ready", stopping: true });
    expect(await connectionHeaderOf(url)).toBe("close");
    expect(new Set(await statuses)).toEqual(new Set([200]));
    expect(await app.exited).toBe(0);
    await expect(fetch(url)).rejects.toThrow();
  });

  test.each(["SIGTERM", "SIGINT"] as const)("a further %s ends the delay", async (signal) => {
    const { app, readyUrl } = await start(APPS[0], LONG_DELAY_MS);
    app.kill("SIGTERM");
    await eventually(async () => expect((await readinessOf(readyUrl)).status).toBe(503));
    app.kill(signal);
    expect(await app.exited).toBe(0);
  });
});

test("a stop because the parent has ended has no delay", async () => {
  const main = fileURLToPath(new URL("../apps/ad-server/src/main.ts", import.meta.url));
  const env = {
    PATH: process.env["PATH"],
    REDIS_URL: redis.url,
    AD_SERVER_API_KEYS: TEST_API_KEY,
    AD_SERVER_PORT: "0",
    AD_SERVER_OPS_PORT: "0",
    SHUTDOWN_DELAY_MS: String(LONG_DELAY_MS),
  };
  const child = spawn(process.execPath, [main], { env, stdio: ["ignore", "ignore", "ignore", "ipc"] });
  await once(child, "message");
  const exited = once(child, "exit");
  child.disconnect();
  expect(await exited).toEqual([0, null]);
});

/** The proxy's long-lived parts keep the contract of start and stop. */
import { UNKNOWN_FINDING } from "@adrelay/core";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { NO_PROXIES, openDirectory, publisherSources } from "@adrelay/provider";
import { connectRedis, createRegistry } from "@adrelay/service-kit";
import { openStore } from "@adrelay/store";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, test, vi } from "vitest";
import { OpenCalls, type WatchedCall } from "../src/http/open-calls.ts";
import { Upstreams } from "../src/http/upstreams.ts";
import { Journal } from "../src/turns/journal.ts";
import { createTurnMetrics } from "../src/turns/turn-metrics.ts";

const log = pino({ level: "silent" });
let server: TestRedis;
let redis: Redis;
beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url, "request", log);
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

describe("by its interval", () => {
  beforeEach(() => {
    vi.useFakeTimers({ toFake: ["setInterval", "clearInterval"] });
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  startStopSuite(
    "the journal",
    () =>
      new Journal({
        turns: openStore({ redis, recordRetentionMs: 60_000 }).turns,
        findAd: async () => UNKNOWN_FINDING,
        metrics: createTurnMetrics(createRegistry()),
        log,
        random: Math.random,
        maxBytes: 1_000_000,
        textLimitBytes: 1000,
      }),
    // It appends and renews by an interval, and nothing else here has one.
    { isRunning: () => vi.getTimerCount() > 0 },
  );
});

startStopSuite("the watch over idle calls", () => new OpenCalls(1000), {
  isRunning: (calls) => calls.isRunning,
});

test("a stopped watch ends no call any more", () => {
  const ended: string[] = [];
  const call: WatchedCall = { hasMoved: false, idleSinceMs: 0, end: (reason) => void ended.push(reason) };
  const calls = new OpenCalls(1);
  calls.start();
  calls.add(call);
  calls.endAll();
  calls.stop();
  calls.endAll();
  expect(ended).toEqual(["stopped"]);
});

test("connections to models close with a stop, also before the first call", async () => {
  const baseUrls = { openai: "http://127.0.0.1:9/v1", anthropic: "http://127.0.0.1:9" };
  const upstreams = new Upstreams({ baseUrls, proxies: NO_PROXIES, tls: undefined });
  await upstreams.stop();
  const opened = openDirectory(
    publisherSources(
      {
        PROVIDER_URL: "http://127.0.0.1:9",
        PROVIDER_API_KEY: "key-0123456789abcdef",
        PROVIDER_API_KEY_HEADER: "X-Key",
      },
      ["key-of-a-caller-0123"],
      {},
    ),
  );
  const publisher = opened.kind === "ok" ? opened.directory.current[0] : undefined;
  expect(publisher).toBeDefined();
  if (publisher !== undefined) {
    expect(upstreams.find(publisher, "openai")).toBe(upstreams.find(publisher, "openai"));
  }
  await Promise.all([upstreams.stop(), upstreams.stop()]);
});

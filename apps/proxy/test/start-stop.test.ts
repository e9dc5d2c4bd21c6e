/** The journal keeps the contract of start and stop. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { connectRedis, createRegistry } from "@adrelay/service-kit";
import { openStore } from "@adrelay/store";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, afterEach, beforeAll, beforeEach, describe, vi } from "vitest";
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

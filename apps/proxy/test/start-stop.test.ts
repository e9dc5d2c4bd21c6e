/** The journal keeps the contract of start and stop. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { connectRedis, createRegistry } from "@adrelay/service-kit";
import { openStore } from "@adrelay/store";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, beforeAll } from "vitest";
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

/** Its interval keeps the process running, and nothing else here does. */
const timersNow = () => process.getActiveResourcesInfo().filter((kind) => kind === "Timeout").length;

startStopSuite(
  "the journal",
  () => {
    const timersBefore = timersNow();
    const journal = new Journal({
      turns: openStore({ redis, recordRetentionMs: 60_000 }).turns,
      metrics: createTurnMetrics(createRegistry()),
      log,
      random: Math.random,
      maxBytes: 1_000_000,
      textLimitBytes: 1000,
    });
    return {
      start: () => journal.start(),
      stop: () => journal.stop(),
      isRunning: () => timersNow() > timersBefore,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

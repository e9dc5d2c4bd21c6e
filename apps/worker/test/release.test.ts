/** Guards against a parked acknowledgment that no worker releases. */
import { randomUUID } from "node:crypto";
import { publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { openStore } from "@adrelay/store";
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { pino } from "pino";
import { Registry } from "prom-client";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CircuitBreakers } from "../src/circuit-breakers.ts";
import { CircuitMetrics } from "../src/circuit-metrics.ts";
import { PayloadBudget } from "../src/payload-budget.ts";
import { newJob, TEXT_HASH } from "./worker-fixture.ts";

const LONG_MS = 3_600_000;
const publisher = publisherIdSchema.parse("beta");
const account = { url: "http://127.0.0.1:9", apiKey: "key", apiKeyHeader: "x-api-key" };

let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

function setup() {
  const store = openStore({
    redis,
    waitingRedis: redis,
    recordRetentionMs: LONG_MS,
    circuitRules: { probeIntervalMs: LONG_MS, recoveryRatePerSecond: 100 },
    partition: randomUUID(),
  });
  const accounts = [
    {
      id: "alpha-account",
      name: "alpha",
      account,
      publishers: [publisherIdSchema.parse("alpha"), publisher],
    },
  ];
  const breakers = new CircuitBreakers({
    circuits: store.circuits,
    accounts,
    attemptsMax: 10,
    payloads: new PayloadBudget({ bytesMax: 1, isForOne: () => false }),
    metrics: new CircuitMetrics(new Registry(), { providersMax: 1, slotsMax: 10 }),
    log: pino({ level: "silent" }),
  });
  return { store, breakers };
}

test("workers find what another one parked under another account name", async () => {
  const { store, breakers } = setup();
  await breakers.release();
  await breakers.release();
  store.deliveries.start({
    concurrency: 1,
    attemptTimeoutMs: 1000,
    attempt: async () => ({
      kind: "parked",
      account: "beta",
      place: { kind: "by_time", dueAtMs: 1 },
      notify: undefined,
    }),
    onSettled: () => {},
  });
  await store.acknowledgments.accept({ job: newJob({ publisher }), textHash: TEXT_HASH });
  await eventually(async () => expect((await store.queueDepths()).delayed).toBe(1));
  await store.deliveries.stop();
  await eventually(async () => {
    await breakers.release();
    expect(await store.queueDepths()).toMatchObject({ delayed: 0, waiting: 1 });
  });
  await store.stop();
});

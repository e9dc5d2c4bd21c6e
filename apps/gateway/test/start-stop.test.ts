/** The gateway's long-lived parts keep the contract of start and stop. */
import { randomUUID } from "node:crypto";
import { adResponseIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { connectRedis, createRegistry, PeriodicHeartbeat } from "@adrelay/service-kit";
import { openStore } from "@adrelay/store";
import { eventually } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { OutcomeWaiters } from "../src/acknowledge/outcome-waiters.ts";

const log = pino({ level: "silent" });
let server: TestRedis;
let redis: Redis;
let subscriber: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url, "request", log);
  subscriber = connectRedis(server.url, "subscriber", log);
  await eventually(() => expect(redis.status).toBe("ready"));
});
afterAll(async () => {
  redis.disconnect();
  subscriber.disconnect();
  await server.dispose();
});

const newId = () => adResponseIdSchema.parse(randomUUID());
const newCaller = () => ({ isGone: false, onGone: undefined });

startStopSuite(
  "the waits for outcomes",
  () => {
    const listenersBefore = subscriber.listenerCount("message");
    const waiters = new OutcomeWaiters(subscriber);
    return {
      start: () => waiters.start(),
      stop: () => waiters.stop(),
      isRunning: () => subscriber.listenerCount("message") > listenersBefore,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

test("a stop of the waits ends their subscription and all waits, also later ones", async () => {
  const waiters = new OutcomeWaiters(subscriber);
  const { channel, next } = waiters.wait(newId(), newCaller());
  await waiters.start();
  expect(await redis.pubsub("CHANNELS", channel)).toEqual([channel]);
  const waiting = next(60_000);
  waiters.stop();
  expect(await waiting).toBeUndefined();
  expect(await waiters.wait(newId(), newCaller()).next(60_000)).toBeUndefined();
  await eventually(async () => expect(await redis.pubsub("CHANNELS", channel)).toEqual([]));
});

startStopSuite(
  "a process' heartbeat in Redis",
  () => {
    const store = openStore({ redis, recordRetentionMs: 60_000, partition: randomUUID() });
    const heartbeat = store.heartbeat({
      identity: { role: "gateway", host: "h", pid: 1, version: "0", startedAtMs: Date.now() },
      registry: createRegistry(),
    });
    const periodic = new PeriodicHeartbeat(heartbeat, 5);
    const isRunning = async () => (await heartbeat.loadProcesses()).length > 0;
    let isStopped = false;
    return {
      // The first beat takes a moment, and there is none after a stop.
      start: async () => {
        periodic.start();
        await eventually(async () => expect(isStopped || (await isRunning())).toBe(true));
      },
      stop: () => {
        isStopped = true;
        return periodic.stop();
      },
      isRunning,
    };
  },
  { isRunning: (part) => part.isRunning() },
);

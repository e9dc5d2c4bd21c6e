/** When uses of keys are saved, on a real Redis. */
import { hash } from "node:crypto";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { connectRedis, guardRedis, Lifecycle } from "@adrelay/service-kit";
import { openStore, type Store } from "@adrelay/store";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { saveKeyUses } from "../src/process/heartbeat.ts";

const log = pino({ level: "silent" });
const STOP_MS = 5000;
const keyOf = (name: string) => ({ digest: hash("sha256", name, "hex") });
const heartbeat = { writes: { kind: "accepted" } } as const;

let server: TestRedis;
let redis: ReturnType<typeof connectRedis>;
let store: Store;

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url, "request", log);
  await guardRedis(redis, { mode: "require" }, log);
  store = openStore({ redis, recordRetentionMs: 60_000 });
});
afterAll(async () => {
  await store.stop();
  redis.disconnect();
  await server.dispose();
});

test("a use that was noted just before a stop is saved by the stop", async () => {
  const lifecycle = new Lifecycle(log);
  await saveKeyUses({ lifecycle, log }, store.keyUses, heartbeat);
  store.keyUses.note(keyOf("used"));
  await lifecycle.stop(STOP_MS);
  expect((await store.keyUses.load())(keyOf("used"))).toBeDefined();
});

test("a stop goes on if its save fails", async () => {
  const failures: unknown[] = [];
  const lifecycle = new Lifecycle(pino({ level: "warn" }, { write: (line) => void failures.push(line) }));
  const keyUses = { save: () => Promise.reject(new Error("away")) };
  await saveKeyUses({ lifecycle, log }, keyUses, heartbeat);
  await lifecycle.stop(STOP_MS);
  expect(failures).toEqual([]);
});

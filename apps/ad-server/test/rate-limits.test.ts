import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import { eventually } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  callerOf,
  get,
  injectionOf,
  KEY,
  OTHER_KEY,
  PROMPTS,
  post,
  startAdServer,
  type TestAdServer,
  UNKNOWN_ID,
} from "./ad-server.ts";

const REVOKED_KEY = "key-that-was-good";
const PER_SECOND = 20;
const BURST = 10;

let server: TestAdServer;
beforeAll(async () => {
  server = await startAdServer({
    RATE_LIMIT_PER_SECOND: String(PER_SECOND),
    RATE_LIMIT_BURST: String(BURST),
    AD_SERVER_REVOKED_KEYS: REVOKED_KEY,
  });
});
afterAll(() => server.dispose());

const start = (key: string) =>
  post(`${server.url()}${INJECTION_PATH}`, injectionOf(PROMPTS.no_fill), { "X-Service-API-Key": key });

test("calls beyond rate and burst get 429, while other publishers and operations are served", async () => {
  const answers = await Promise.all(Array.from({ length: 200 }, () => start(KEY)));
  const limited = answers.filter(({ status }) => status === 429);
  const served = answers.filter(({ status }) => status === 202);
  // On a slow machine the calls may reach into a second or third window.
  expect(served.length).toBeGreaterThanOrEqual(PER_SECOND + BURST);
  expect(served.length + limited.length).toBe(200);
  for (const { headers, body } of limited) {
    expect(headers.get("retry-after")).toMatch(/^[1-9]\d*$/);
    expect(body).toMatchObject({ code: "rate_limited", status: 429 });
  }
  expect(limited.length).toBeGreaterThan(0);
  expect((await start(OTHER_KEY)).status).toBe(202);
  expect((await callerOf(server).acknowledge(UNKNOWN_ID, "text")).status).toBe(404);
});

test("a limited publisher is served again after Retry-After", async () => {
  await eventually(async () => {
    expect((await start(KEY)).status).toBe(202);
  });
});

test("a full Redis takes acknowledgments and no injections, also within rate limits", async () => {
  const caller = callerOf(server);
  const { id, product } = await eventually(async () => {
    const served = await caller.served();
    expect(served.product).not.toBe("undefined");
    return served;
  });
  const redis = new Redis(server.redis.url);
  await redis.config("SET", "maxmemory", "1");
  try {
    expect((await start(OTHER_KEY)).body).toMatchObject({ status: 503, code: "storage_unavailable" });
    await eventually(async () => expect((await caller.acknowledge(id, product)).status).toBe(200));
  } finally {
    await redis.config("SET", "maxmemory", "0");
    redis.disconnect();
  }
});

test("calls without a good key are 401, however many there are", async () => {
  const answers = await Promise.all(Array.from({ length: 100 }, () => start("not-a-key")));
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([401]));
});

test("a revoked key gets 403 key_revoked on every path", async () => {
  const headers = { "X-Service-API-Key": REVOKED_KEY };
  for (const path of [INJECTION_PATH, ACKNOWLEDGE_PATH]) {
    const { status, body } = await post(`${server.url()}${path}`, {}, headers);
    expect([status, body["code"]]).toEqual([403, "key_revoked"]);
  }
  const { status, body } = await get(`${server.url()}/acknowledgments/${UNKNOWN_ID}`, REVOKED_KEY);
  expect([status, body["code"]]).toEqual([403, "key_revoked"]);
});

test("while Redis is away a rate-limited operation is 503", async () => {
  await server.redis.stop();
  const { status, body } = await start(KEY);
  expect([status, body["code"]]).toEqual([503, "storage_unavailable"]);
});

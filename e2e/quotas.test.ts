/**
 * Two publishers on one relay with a Redis of 64 MB. Guards against one publisher that takes the storage from the other, and
 * against a readiness that hides a full Redis.
 */
import { statsSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  callerKeyOf,
  eventually,
  fetchMetrics,
  filled,
  type PublishersFile,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdrelay,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  unknownId,
  writePublishersFile,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

const MAXMEMORY_BYTES = 64 * 1024 * 1024;
const UNKNOWN_LIMIT_BYTES = Math.floor(0.05 * MAXMEMORY_BYTES);
const ASYNC = { headers: { Prefer: "respond-async" } };
const PATIENT = { headers: { Prefer: "wait=10" } };
const MEGABYTE = "x".repeat(1_000_000);

let server: TestRedis;
let redis: Redis;
/** The hostile publisher's provider is away. */
let away: ScriptedProvider;
let provider: ScriptedProvider;
let file: PublishersFile;
let stack: RelayStack;
let hostile: RelayCaller;
let good: RelayCaller;

beforeAll(async () => {
  [server, away, provider] = await Promise.all([
    startTestRedis(["--maxmemory", String(MAXMEMORY_BYTES)]),
    startScriptedProvider(),
    startScriptedProvider(),
  ]);
  redis = new Redis(server.url);
  away.onStart(() => filled());
  away.onAcknowledge(() => ({ kind: "answer", status: 503 }));
  provider.onStart(() => filled());
  provider.onAcknowledge(() => acknowledged());
  file = writePublishersFile([
    { id: "hostile", providerUrl: away.url, keyEnv: "KEY_AWAY" },
    { id: "good", providerUrl: provider.url, keyEnv: "KEY_GOOD" },
    {
      id: "strict",
      providerUrl: provider.url,
      keyEnv: "KEY_GOOD",
      more: "unknown_ack: reject, quotas: { queued_bytes: 2KB }",
    },
  ]);
  // Quotas of a gateway alone would refuse a part of the flood before Redis does.
  const local = { QUOTA_BYTES_IN_FLIGHT: "off", QUOTA_BYTES_PER_SECOND: "off" };
  const env = { ...local, PUBLISHERS_FILE: file.path, API_KEYS: "", KEY_AWAY: "away", KEY_GOOD: "good" };
  stack = await startRelayStack({ redis: server, providerUrl: provider.url, env });
  hostile = relayCaller(stack.gatewayUrl, callerKeyOf("hostile"));
  good = relayCaller(stack.gatewayUrl, callerKeyOf("good"));
});
afterAll(async () => {
  await stack.stop();
  redis.disconnect();
  await Promise.all([away.close(), provider.close(), server.dispose()]);
  file.remove();
});

const metric = async (name: string) => (await fetchMetrics(stack.gatewayOpsUrl)).get(name);
const readiness = async () => {
  const response = await fetch(`${stack.gatewayOpsUrl}/readyz`);
  return { status: response.status, ...Object(await response.json()) };
};
const stats = async () => {
  const headers = { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` };
  return statsSchema.parse(await (await fetch(`${stack.gatewayOpsUrl}/admin/v1/stats`, { headers })).json());
};
const setMemoryShare = async (share: number) => {
  const used = Number(/^used_memory:(\d+)/m.exec(await redis.info("memory"))?.[1]);
  await redis.config("SET", "maxmemory", String(Math.round(used / share)));
};

test("a flood of invented ids meets its own quota, and the other publisher nothing", async () => {
  const flood = Array.from({ length: 6 }, async () => {
    const answers: Awaited<ReturnType<RelayCaller["acknowledge"]>>[] = [];
    for (let sent = 0; sent < 6; sent += 1) {
      answers.push(await hostile.acknowledgeUntilAccepted(unknownId(), MEGABYTE, ASYNC));
    }
    return answers;
  });
  const others = Array.from({ length: 6 }, async () => {
    const statuses: number[] = [];
    for (let sent = 0; sent < 4; sent += 1) {
      const id = sent % 2 === 0 ? await good.injectUntilFilled() : unknownId();
      statuses.push((await good.acknowledgeUntilAccepted(id, "a text of a model", PATIENT)).status);
    }
    return statuses;
  });
  const [floods, delivered] = [(await Promise.all(flood)).flat(), (await Promise.all(others)).flat()];
  expect(delivered).toEqual(Array.from({ length: 24 }, () => 200));

  const refused = floods.filter(({ status }) => status === 429);
  expect(floods.filter(({ status }) => status === 201)).toHaveLength(3);
  expect(refused).toHaveLength(33);
  const [first] = refused;
  expect(first?.headers.get("Retry-After")).toBe("10");
  expect(first?.body).toMatchObject({
    code: "rate_limited",
    quota: "unknown_bytes",
    limit: UNKNOWN_LIMIT_BYTES,
    used: expect.any(Number),
  });
  expect(await readiness()).toMatchObject({ status: "ready", checks: { redis: "ok" } });
  expect((await readiness()).warnings?.redis_memory).toBeUndefined();
});

test("known ids of the publisher over its quota still go in", async () => {
  expect(
    (await hostile.acknowledgeUntilAccepted(await hostile.injectUntilFilled(), MEGABYTE, ASYNC)).status,
  ).toBe(201);
  expect((await hostile.acknowledgeUntilAccepted(unknownId(), MEGABYTE, ASYNC)).status).toBe(429);
});

test("metrics, statistics and status show use, limit and refusals", async () => {
  const of = (publisher: string) => `{publisher="${publisher}",quota="unknown_bytes"}`;
  expect(await metric(`adrelay_quota_refused_total${of("hostile")}`)).toBe(34);
  expect(await metric(`adrelay_quota_refused_total${of("good")}`)).toBe(0);
  expect(await metric(`adrelay_quota_limit_bytes${of("hostile")}`)).toBe(UNKNOWN_LIMIT_BYTES);
  const used = await eventually(async () => {
    const bytes = await metric(`adrelay_quota_used_bytes${of("hostile")}`);
    expect(bytes).toBeGreaterThan(3_000_000);
    return bytes;
  });
  const { quotas, storage } = await stats();
  expect(quotas).toContainEqual({
    publisher: "hostile",
    quota: "unknown_bytes",
    used_bytes: used,
    limit_bytes: UNKNOWN_LIMIT_BYTES,
    refused: 34,
  });
  expect(storage).toMatchObject({ limit_bytes: MAXMEMORY_BYTES, accepts: "all" });
  const env = { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN };
  const { stdout } = await startAdrelay(["status"], { env }).ended;
  expect(stdout).toMatch(/^hostile +unknown_bytes +2\.9 MB of 3\.2 MB \(\d+ %\) +34$/m);
});

test("one command discards exactly what was invented, and makes room for more", async () => {
  const env = { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN };
  const words = ["queued", "discard", "--unknown", "--publisher", "hostile", "--why", "invented", "--yes"];
  const { exit, stderr } = await startAdrelay(words, { env }).ended;
  expect([exit, stderr]).toEqual([0, expect.stringContaining("3 of 3 discarded")]);
  const { quotas, publishers } = await stats();
  expect(quotas.find((one) => one.publisher === "hostile" && one.quota === "unknown_bytes")).toMatchObject({
    used_bytes: 0,
  });
  expect(publishers["hostile"]).toMatchObject({ queued: 1, discarded: 3 });
  for (const id of [unknownId(), unknownId(), unknownId()]) {
    expect((await hostile.acknowledgeUntilAccepted(id, MEGABYTE, ASYNC)).status).toBe(201);
  }
});

test("a publisher has the quotas and the rule of the publishers' file", async () => {
  const strict = relayCaller(stack.gatewayUrl, callerKeyOf("strict"));
  expect((await strict.acknowledge(unknownId(), "text", ASYNC)).status).toBe(404);
  expect(await metric('adrelay_quota_limit_bytes{publisher="strict",quota="queued_bytes"}')).toBe(2048);
});

test("unknown ids stop first as Redis fills, then known ones, and readiness says so", async () => {
  // What is on its way should be small beside what is used.
  for (const name of ["a", "b", "c", "d", "e", "f"]) {
    await redis.set(name, Buffer.alloc(4_000_000));
  }
  // What Redis uses falls as the buffers of its connections go, so each look sets the limit anew.
  await eventually(async () => {
    await setMemoryShare(0.8);
    const answer = await good.acknowledge(unknownId(), "text", PATIENT);
    expect([answer.status, answer.body["code"]]).toEqual([503, "storage_full"]);
  });
  expect((await good.acknowledgeUntilAccepted(await good.injectUntilFilled(), "text", PATIENT)).status).toBe(
    200,
  );
  const nearly = await eventually(async () => {
    await setMemoryShare(0.8);
    const now = await readiness();
    expect(now.warnings?.redis_memory).toBeDefined();
    return now;
  });
  expect(nearly.status).toBe("ready");
  expect(nearly.warnings.redis_memory).toMatch(/^is used by \d+ %: acknowledgments of unknown ids get 503$/);
  expect(await metric('adrelay_quota_refused_total{publisher="good",quota="redis_memory"}')).toBeGreaterThan(
    0,
  );

  const id = await good.injectUntilFilled();
  await eventually(async () => {
    await setMemoryShare(0.97);
    expect((await readiness()).status).toBe("not_ready");
    expect((await good.acknowledge(id, "text", PATIENT)).status).toBe(503);
    expect((await stats()).storage).toMatchObject({ accepts: "none" });
  });

  // What is queued goes out nevertheless, and makes room.
  away.onAcknowledge(() => acknowledged());
  await eventually(async () => expect((await readiness()).status).toBe("ready"));
  expect((await good.acknowledgeUntilAccepted(id, "text", PATIENT)).status).toBe(200);
});

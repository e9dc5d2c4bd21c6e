/** The doctor of a real gateway: it reports each fault by name, and no answer contains a secret. */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { createServer, type Server } from "node:https";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type DoctorCheck, doctorReportSchema } from "@adrelay/contract";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  eventually,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

/** Of the Redis here, in its own words. */
const MAXMEMORY = "512mb";
const SECRETS = [TEST_ADMIN_TOKEN, TEST_API_KEY, "key-of-acme", "key-of-beta", "user-of", "password-of"];

let server: TestRedis;
let redis: Redis;
let provider: ScriptedProvider;
let stack: RelayStack;
let dir: string;

beforeAll(async () => {
  [server, provider] = await Promise.all([
    startTestRedis(["--maxmemory", MAXMEMORY]),
    startScriptedProvider(),
  ]);
  redis = new Redis(server.url, { maxRetriesPerRequest: null });
  redis.on("error", () => {});
  dir = mkdtempSync(join(tmpdir(), "adrelay-doctor-"));
  const file = join(dir, "publishers.yaml");
  const [deadPort, tlsPort] = [await freeLanePort(), await listen(tlsProvider)];
  writeFileSync(file, publishersFile(`http://127.0.0.1:${deadPort}`, `https://127.0.0.1:${tlsPort}`));
  stack = await startRelayStack({
    redis: server,
    providerUrl: provider.url,
    env: {
      API_KEYS: "",
      PUBLISHERS_FILE: file,
      KEY_OF_ACME: "key-of-acme",
      KEY_OF_BETA: "key-of-beta",
      HTTPS_PROXY: "http://user-of-proxy:password-of-proxy@127.0.0.1:1",
      NO_PROXY: "127.0.0.1",
    },
  });
});
afterAll(async () => {
  tlsProvider.close();
  await stack.stop();
  redis.disconnect();
  await Promise.all([provider.close(), server.dispose()]);
  rmSync(dir, { recursive: true });
});
beforeEach(() =>
  provider.onAcknowledge(({ headers }) =>
    headers["x-service-api-key"] === "key-of-acme"
      ? { kind: "answer", status: 401 }
      : { kind: "answer", status: 422 },
  ),
);

/**
 * acme's key is refused, nothing listens at beta's address, and default and other share one account. The name of dns isn't
 * known, the certificate of tls isn't trusted, and far is reached through a proxy that isn't there.
 */
function publishersFile(deadUrl: string, tlsUrl: string): string {
  const digest = (key: string) => createHash("sha256").update(key).digest("hex");
  const own = (url: string, env: string) => `, provider: {url: "${url}", api_key_env: ${env}}`;
  const line = (id: string, key: string, more = "") =>
    `  - {id: ${id}, name: ${id}, key_sha256: [${digest(key)}]${more}}`;
  return [
    "publishers:",
    line("default", TEST_API_KEY),
    line("other", "o"),
    line("acme", "a", own(provider.url, "KEY_OF_ACME")),
    line("beta", "b", own(deadUrl, "KEY_OF_BETA")),
    line("dns", "d", own("http://user-of-dns:password-of-dns@no-such-host.invalid/ads/", "KEY_OF_BETA")),
    line("tls", "t", own(tlsUrl, "KEY_OF_BETA")),
    line("far", "f", own("https://user-of-far:password-of-far@ads.test", "KEY_OF_BETA")),
  ].join("\n");
}

const tlsData = (name: string) =>
  readFileSync(new URL(`../../../packages/provider/testdata/tls/${name}.pem`, import.meta.url));
const tlsProvider = createServer({ cert: tlsData("self-signed"), key: tlsData("self-signed-key") });

function listen(server: Server): Promise<number> {
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(Object(server.address()).port));
  });
}

async function examine(): Promise<Map<string, DoctorCheck>> {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1/doctor`, {
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` },
  });
  expect(response.status).toBe(200);
  const text = await response.text();
  for (const secret of SECRETS) {
    expect(text).not.toContain(secret);
  }
  const { checks } = doctorReportSchema.parse(JSON.parse(text));
  return new Map(checks.map((check) => [check.name, check]));
}

const statusesOf = (checks: Map<string, DoctorCheck>, ...names: string[]) =>
  names.map((name) => checks.get(name)?.status);

test("the doctor needs the token and allows no POST", async () => {
  const url = `${stack.gatewayOpsUrl}/admin/v1/doctor`;
  expect((await fetch(url)).status).toBe(401);
  const headers = { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` };
  expect((await fetch(url, { method: "POST", headers })).status).toBe(405);
});

test("a healthy relay passes all checks of Redis and its processes", async () => {
  const checks = await eventually(async () => {
    const found = await examine();
    expect(found.get("workers")?.status).toBe("ok");
    const bad = [...found.values()].filter(
      ({ name, status }) => status !== "ok" && !name.startsWith("provider:"),
    );
    expect(bad).toEqual([]);
    return found;
  });
  expect(checks.get("redis")?.detail).toMatch(/^(Redis|Valkey) \d+\.\d+\.\d+, answers in \d+ ms$/);
  expect(checks.get("redis_append_only_file")?.detail).toContain("always");
});

test("each provider account gets one call that can't be an acknowledgment", async () => {
  provider.posts.length = 0;
  const checks = await examine();
  expect(checks.get("provider:default")).toMatchObject({
    status: "ok",
    detail: expect.stringContaining("default, other"),
  });
  expect(checks.get("provider:acme")).toMatchObject({
    status: "fail",
    detail: expect.stringContaining("key refused (401)"),
  });
  expect(checks.get("provider:beta")).toMatchObject({
    status: "fail",
    detail: expect.stringContaining("unreachable"),
  });
  expect(provider.posts.map(({ body }) => body.toString())).toEqual(["{}", "{}"]);
});

test.each([
  [
    "beta",
    /^http:\/\/127\.0\.0\.1:\d+ for beta: unreachable \(ECONNREFUSED\): nothing answers there.* \(HTTP_PROXY\)$/,
  ],
  ["dns", /^http:\/\/no-such-host\.invalid\/ads for dns: dns_failed \((ENOTFOUND|EAI_AGAIN)\): its name/],
  ["tls", /for tls: certificate_invalid \(DEPTH_ZERO_SELF_SIGNED_CERT\): .*PROVIDER_CA_FILE/],
  [
    "far",
    /^https:\/\/ads\.test through the proxy http:\/\/127\.0\.0\.1:1 for far: proxy_failed \(ECONNREFUSED\): [^:]*: check HTTPS_PROXY with/,
  ],
])("the doctor names why %s can't be called, and what to do", async (publisher, detail) => {
  const check = (await examine()).get(`provider:${publisher}`);
  expect(check).toMatchObject({ status: "fail", detail: expect.stringMatching(detail) });
});

test.each([
  ["appendfsync", "everysec", "always", "redis_append_only_file", "warn"],
  ["appendonly", "no", "yes", "redis_append_only_file", "fail"],
  ["maxmemory-policy", "allkeys-lru", "noeviction", "redis_maxmemory_policy", "fail"],
  ["maxmemory", "2mb", MAXMEMORY, "redis_memory", "fail"],
  ["maxmemory", "0", MAXMEMORY, "redis_memory", "warn"],
] as const)("with %s %s the doctor names the fault", async (name, value, wellValue, check, status) => {
  await redis.config("SET", name, value);
  try {
    await eventually(async () => {
      expect(statusesOf(await examine(), "redis", check)).toEqual(["ok", status]);
    });
  } finally {
    await redis.config("SET", name, wellValue);
  }
  // What intake accepts is known to a second.
  await eventually(async () => expect(statusesOf(await examine(), check)).toEqual(["ok"]));
});

test("the doctor warns of dead letters, another version and a wrong clock", async () => {
  const caller = relayCaller(stack.gatewayUrl);
  provider.onAcknowledge(() => ({ kind: "answer", status: 400 }));
  await caller.acknowledgeUntilAccepted(unknownId(), "text");
  const record = { role: "worker", host: "h", pid: 1, version: "0.0.9", startedAtMs: 1, clockSkewMs: -5000 };
  await eventually(async () =>
    expect((await examine()).get("dead_letters")?.detail).toMatch(/^\d+, the oldest for \d+ s$/),
  );
  await redis.hset("{adrelay:0}:processes", "other", `1 ${Date.now()} ${JSON.stringify(record)}`);
  const checks = await examine();
  expect(statusesOf(checks, "dead_letters", "versions", "clocks")).toEqual(["warn", "warn", "warn"]);
  expect(checks.get("clocks")?.detail).toContain("worker h/1 by -5000 ms");
  await redis.hdel("{adrelay:0}:processes", "other");
});

test("queued ones that the provider forbids are named, with the place to read about it", async () => {
  provider.onAcknowledge(() => ({
    kind: "answer",
    status: 403,
    body: { code: "other_publisher", message: "not yours", status: 403 },
  }));
  const caller = relayCaller(stack.gatewayUrl);
  for (const _ of [1, 2, 3]) {
    expect((await caller.acknowledgeUntilAccepted(unknownId(), "text")).status).toBe(201);
  }
  await eventually(async () => {
    expect((await examine()).get("queued")).toMatchObject({
      status: "warn",
      detail: expect.stringMatching(/to 3 of them was 403.*docs\/secrets\.md/),
    });
  });
  expect(stack.apps.get("worker")?.logs).toContainEqual(
    expect.objectContaining({ event: "attempt", code: "http_403", provider_error: "other_publisher" }),
  );
});

test.each([
  [
    "of the service",
    { kind: "answer", status: 422, body: { code: "faulty" } },
    "ok",
    "answers 422, and accepts the key",
  ],
  [
    "of the service, with 2xx",
    { kind: "answer", status: 200, body: {} },
    "ok",
    "answers 200, and accepts the key",
  ],
  ["that forbids", { kind: "answer", status: 403, body: { code: "k" } }, "fail", "key refused (403)"],
  [
    "of a service that is away",
    { kind: "answer", status: 503, body: { code: "away" } },
    "warn",
    "answers 503, which",
  ],
  [
    "that leads elsewhere",
    { kind: "raw", status: 302, bytes: "", headers: { location: "/" } },
    "warn",
    "answers 302, which",
  ],
  [
    "of an API gateway",
    { kind: "answer", status: 404, body: { message: "no route" } },
    "warn",
    "answers 404, which",
  ],
  ["of a firewall", { kind: "raw", status: 403, bytes: "<p>no</p>" }, "warn", "answers 403, which"],
  ["with a page", { kind: "raw", status: 200, bytes: "<p>welcome</p>" }, "warn", "answers 200, which"],
] as const)("an answer %s shows what it can of the key", async (_whose, behaviour, status, words) => {
  provider.onAcknowledge(() => behaviour);
  expect((await examine()).get("provider:default")).toMatchObject({
    status,
    detail: expect.stringContaining(`for default, other: ${words}`),
  });
});

test("a provider that hangs is reported within the doctor's time limit", async () => {
  provider.onAcknowledge(() => ({ kind: "hang" }));
  expect((await examine()).get("provider:default")).toMatchObject({
    status: "fail",
    detail: expect.stringContaining("timeout"),
  });
});

test("a worker that is silent for more than ten seconds is warned of, and one that stands still for a moment isn't", async () => {
  await stack.apps.get("worker")?.stop();
  const record = { role: "worker", host: "h", pid: 1, version: "0.0.9", startedAtMs: 1, clockSkewMs: 0 };
  const silentFor = async (agoMs: number) => {
    const text = `1 ${Date.now() - agoMs} ${JSON.stringify(record)}`;
    await redis.hset("{adrelay:0}:processes", "other", text);
    return (await examine()).get("workers");
  };
  expect(await silentFor(7000)).toMatchObject({ status: "ok" });
  expect(await silentFor(14_000)).toMatchObject({
    status: "warn",
    detail: expect.stringMatching(/^none has been seen for 1\d s: while none runs, nothing is delivered$/),
  });
  await redis.hdel("{adrelay:0}:processes", "other");
  await stack.start("worker");
});

test("a worker that stopped gracefully is missing immediately", async () => {
  await stack.apps.get("worker")?.stop();
  expect((await examine()).get("workers")?.status).toBe("fail");
  await stack.start("worker");
});

test("a worker that was killed is missing within seconds", async () => {
  await stack.crash("worker");
  await eventually(async () => expect((await examine()).get("workers")?.status).toBe("fail"), 10_000);
  await stack.start("worker");
});

test("without Redis the doctor still answers, and reports it", async () => {
  await server.stop();
  const checks = await examine();
  expect(statusesOf(checks, "redis", "processes", "books", "provider:default")).toEqual([
    "fail",
    "fail",
    "fail",
    "ok",
  ]);
  await server.restart();
});

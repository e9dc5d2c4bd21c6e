/**
 * Keys and publishers come and go while gateways and a worker run. Guards against callers that a rotation refuses, and
 * against a key that works on after it was revoked.
 */
import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { doctorReportSchema, publishersViewSchema } from "@adrelay/contract";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  acknowledged,
  eventually,
  fetchMetrics,
  filled,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdrelay,
  startApp,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const [OLD_KEY, NEW_KEY, OTHER_KEY] = ["old-key-of-acme", "new-key-of-acme", "key-of-other"] as const;
const [OLD_PROVIDER_KEY, NEW_PROVIDER_KEY] = ["old-key-at-provider", "new-key-at-provider"] as const;
/** How long a revoked key may be taken. */
const REVOKED_WITHIN_MS = 3000;
const ASYNC = { headers: { Prefer: "respond-async" } };

let folder: string;
let file: string;
let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let second: AppProcess;
let gateways: readonly string[];
/** The keys that the provider takes. */
let takes: Set<string>;

const digestOf = (text: string) => createHash("sha256").update(text).digest("hex");

/** Puts a file in the place of another one, as an editor does. */
function replace(path: string, text: string): void {
  writeFileSync(`${path}.next`, text);
  renameSync(`${path}.next`, path);
}

function publishersFile(publishers: Readonly<Record<string, readonly string[]>>): string {
  const entries = Object.entries(publishers).map(([id, keys]) => {
    const own = keys.map((key) => `{ id: ${key}, sha256: "${digestOf(key)}" }`).join(", ");
    const account = `{ url: "${provider.url}", api_key_file: "${join(folder, "provider-key")}" }`;
    return `  - { id: ${id}, name: ${id}, keys: [${own}], provider: ${account} }\n`;
  });
  return `publishers:\n${entries.join("")}`;
}

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  folder = mkdtempSync(join(tmpdir(), "adrelay-run-time-"));
  file = join(folder, "publishers.yaml");
  replace(join(folder, "provider-key"), OLD_PROVIDER_KEY);
  replace(file, publishersFile({ acme: [OLD_KEY], other: [OTHER_KEY] }));
  const env = { API_KEYS: "", PROVIDER_API_KEY: "", PUBLISHERS_FILE: file, DELIVERY_TIMEOUT_MS: "10000" };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  const [port, opsPort] = [await freeLanePort(), await freeLanePort()];
  const ports = { GATEWAY_PORT: String(port), GATEWAY_OPS_PORT: String(opsPort) };
  second = await startApp("gateway", {
    ...env,
    ...ports,
    REDIS_URL: redis.url,
    PROVIDER_URL: provider.url,
    ADMIN_TOKEN: TEST_ADMIN_TOKEN,
  });
  gateways = [stack.gatewayUrl, `http://127.0.0.1:${port}`];
});
beforeEach(async () => {
  takes = new Set([OLD_PROVIDER_KEY]);
  const isTaken = (key: unknown) => takes.has(String(key));
  provider.onStart(({ headers }) =>
    isTaken(headers["x-service-api-key"]) ? filled() : { kind: "answer", status: 401 },
  );
  provider.onAcknowledge(({ headers }) =>
    isTaken(headers["x-service-api-key"]) ? acknowledged() : { kind: "answer", status: 401 },
  );
  replace(join(folder, "provider-key"), OLD_PROVIDER_KEY);
  replace(file, publishersFile({ acme: [OLD_KEY], other: [OTHER_KEY] }));
  hangUp();
  await isInForce();
});
afterAll(async () => {
  await Promise.all([stack.stop(), second.stop()]);
  await Promise.all([provider.close(), redis.dispose()]);
  rmSync(folder, { recursive: true });
});

const processes = () => [...stack.apps.values(), second];
const hangUp = () => {
  for (const app of processes()) {
    app.kill("SIGHUP");
  }
};
const linesOf = (app: AppProcess, event: string) => app.logs.filter((line) => line["event"] === event);
const ask = async (path: string) => {
  const headers = { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` };
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, { headers });
  return response.json();
};
const checksOf = async (name: string) =>
  doctorReportSchema.parse(await ask("/doctor")).checks.filter((check) => check.name === name);

/** Waits until the file is in force in every process. */
async function isInForce(): Promise<void> {
  const digest = Number.parseInt(digestOf(readFileSync(file, "utf8")).slice(0, 12), 16);
  await eventually(async () => {
    for (const app of processes()) {
      const metrics = await fetchMetrics(`http://127.0.0.1:${app.listening["ops_port"]}`);
      expect(sumOf(metrics, "adrelay_publishers_file_digest")).toBe(digest);
    }
  });
}

/** Injects and acknowledges through both gateways until it is stopped, with the key that `keyOf` returns. */
function startTraffic(keyOf: () => string) {
  const [refused, ids]: [string[], string[]] = [[], []];
  let isStopped = false;
  const run = async (url: string) => {
    while (!isStopped) {
      const caller = relayCaller(url, keyOf());
      const injected = await caller.inject();
      const answers = [injected];
      // A loaded machine may cause a fallback.
      if (injected.status === 200) {
        const id = String(injected.body["ad_response_id"]);
        answers.push(await caller.acknowledgeUntilAccepted(id, "a text", ASYNC));
        ids.push(id);
      }
      for (const { status, text, headers } of answers) {
        if (status > 202 || headers.get("x-adrelay-fallback") === "unauthorized") {
          refused.push(`${status} ${text}`);
        }
      }
    }
  };
  const running = gateways.map(run);
  const stop = async () => {
    isStopped = true;
    await Promise.all(running);
  };
  return { refused, ids, stop };
}

test("keys of callers and of providers are rotated under traffic without a refusal", async () => {
  let key: string = OLD_KEY;
  const attempts = async (labels: Record<string, string> = {}) =>
    sumOf(await fetchMetrics(stack.workerOpsUrl), "adrelay_delivery_attempts_total", labels);
  const before = await attempts();
  const traffic = startTraffic(() => key);
  const posted = (count: number, from: number) =>
    eventually(() => expect(provider.posts.length - from).toBeGreaterThan(count));
  await posted(20, provider.posts.length);

  const both = publishersFile({ acme: [OLD_KEY, NEW_KEY], other: [OTHER_KEY] });
  replace(file, both);
  await isInForce();
  key = NEW_KEY;

  takes = new Set([OLD_PROVIDER_KEY, NEW_PROVIDER_KEY]);
  replace(join(folder, "provider-key"), NEW_PROVIDER_KEY);
  await eventually(() => {
    const latest = provider.posts.slice(-40).map((post) => post.headers["x-service-api-key"]);
    expect(new Set(latest)).toEqual(new Set([NEW_PROVIDER_KEY]));
  });
  takes = new Set([NEW_PROVIDER_KEY]);

  const revokedAtMs = performance.now();
  replace(file, publishersFile({ acme: [NEW_KEY], other: [OTHER_KEY] }));
  await Promise.all(
    gateways.map((url) =>
      eventually(async () => expect((await relayCaller(url, OLD_KEY).inject()).status).toBe(401)),
    ),
  );
  expect(performance.now() - revokedAtMs).toBeLessThan(REVOKED_WITHIN_MS);
  await posted(20, provider.posts.length);
  await traffic.stop();

  expect(traffic.refused).toEqual([]);
  await eventually(async () =>
    expect(await attempts({ outcome: "deliver" })).toBe(traffic.ids.length + before),
  );
  expect(await attempts()).toBe(traffic.ids.length + before);
  const { publishers } = publishersViewSchema.parse(await ask("/publishers"));
  const [acme, other] = publishers.map(({ keys }) => keys);
  expect(acme).toMatchObject([{ id: NEW_KEY, state: "valid", last_used: expect.any(String) }]);
  expect(other).toMatchObject([{ id: OTHER_KEY, last_used: null }]);
});

test("a faulty file is refused with all faults, and SIGHUP ends no process", async () => {
  const good = publishersFile({ acme: [OLD_KEY], other: [OTHER_KEY] });
  replace(file, `${good}  - { id: a b, name: 7, keys: [{ id: k, sha256: plain-key-by-mistake }] }\n`);
  const refusals = () => processes().map((app) => linesOf(app, "publishers_refused"));
  await eventually(() => expect(refusals().map((lines) => lines.length)).toEqual([1, 1, 1]));
  for (const [line] of refusals()) {
    expect(line?.["faults"]).toEqual([
      expect.stringContaining("publishers 3, id"),
      expect.stringContaining("publishers 3, name"),
      expect.stringContaining("publishers 3, keys 1, sha256"),
    ]);
    expect(JSON.stringify(line)).not.toContain("plain-key-by-mistake");
  }
  const valid = async () =>
    sumOf(await fetchMetrics(stack.workerOpsUrl), "adrelay_publishers_file_valid", {});
  expect(await valid()).toBe(0);
  await eventually(async () => expect(await checksOf("publishers_file")).toMatchObject([{ status: "fail" }]));

  hangUp();
  await eventually(() => expect(refusals().map((lines) => lines.length)).toEqual([2, 2, 2]));
  await relayCaller(stack.gatewayUrl, OLD_KEY).injectUntilFilled();
  replace(file, good);
  hangUp();
  await eventually(async () => expect(await valid()).toBe(1));
  await eventually(async () => expect(await checksOf("publishers_file")).toMatchObject([{ status: "ok" }]));
});

test("a publisher that is removed ends its calls, waits as gone, and goes on once it is back", async () => {
  const started = Promise.withResolvers<void>();
  provider.onStart(() => {
    started.resolve();
    return { kind: "late", delayMs: 1500, answer: filled() };
  });
  provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
  const acme = relayCaller(stack.gatewayUrl, OLD_KEY);
  const injection = acme.inject({ headers: { "X-Adrelay-Timeout-Ms": "10000" } });
  await started.promise;
  const without = publishersFile({ other: [OTHER_KEY] });
  replace(file, without);
  hangUp();
  await isInForce();
  const injected = await injection;
  expect(injected.status).toBe(200);
  expect((await acme.inject()).status).toBe(401);

  const whole = publishersFile({ acme: [OLD_KEY], other: [OTHER_KEY], third: [NEW_KEY] });
  replace(file, whole);
  await isInForce();
  const id = injected.body["ad_response_id"];
  expect((await acme.acknowledgeUntilAccepted(id, "a text", ASYNC)).status).toBe(201);
  replace(file, without);
  await eventually(async () =>
    expect(await checksOf("publishers")).toMatchObject([
      { status: "warn", detail: expect.stringMatching(/^acme is gone/) },
    ]),
  );
  provider.onAcknowledge(() => acknowledged());
  replace(file, whole);
  await eventually(async () => {
    const { body } = await acme.lookUp(String(id));
    expect(body["state"]).toBe("delivered");
  });
  provider.onStart(() => filled());
  await relayCaller(stack.gatewayUrl, NEW_KEY).injectUntilFilled();
  const env = { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN };
  const listed = await startAdrelay(["publishers", "list"], { env }).ended;
  expect(listed.stdout).toContain(digestOf(whole).slice(0, 12));
  expect(listed.stdout).toMatch(/^third .* new-key-of-acme +valid/m);
});

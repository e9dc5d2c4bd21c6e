/** Guards against one worker that was left behind with an old key, and stops or slows deliveries for all. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  acknowledged,
  type Behaviour,
  eventually,
  fetchMetrics,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdrelay,
  startApp,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
  unknownId,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

const OLD_KEY = "key-that-was-rotated-away";
const ASYNC = { headers: { Prefer: "respond-async" } };
const SETTINGS = { RETRY_SCHEDULE: "1s", BREAKER_PROBE_INTERVAL_MS: "1000", WORKER_CONCURRENCY: "5" };

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let stale: AppProcess;
let caller: RelayCaller;

beforeEach(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  stack = await startRelayStack({ redis, providerUrl: provider.url, env: SETTINGS });
  stale = await startApp("worker", {
    ...SETTINGS,
    REDIS_URL: redis.url,
    PROVIDER_URL: provider.url,
    PROVIDER_API_KEY: OLD_KEY,
    WORKER_OPS_PORT: "0",
  });
  caller = relayCaller(stack.gatewayUrl);
});
afterEach(async () => {
  await Promise.all([stack.stop(), stale.stop()]);
  await Promise.all([provider.close(), redis.dispose()]);
});

async function acknowledgeMany(count: number): Promise<readonly string[]> {
  const ids = Array.from({ length: count }, unknownId);
  await Promise.all(ids.map((id) => caller.acknowledgeUntilAccepted(id, "text", ASYNC)));
  return ids;
}

async function adrelay(word: "status" | "doctor"): Promise<string> {
  const env = { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN };
  return (await startAdrelay([word], { env }).ended).stdout;
}

const REFUSALS: readonly (readonly [string, Behaviour])[] = [
  ["401", { kind: "answer", status: 401 }],
  ["403 with a code about the key", { kind: "answer", status: 403, body: { code: "key_revoked" } }],
];

test.each(REFUSALS)(
  "a worker whose key is refused with %s stops itself, and others deliver all",
  async (_name, refusal) => {
    provider.onAcknowledge(({ headers }) =>
      headers["x-service-api-key"] === OLD_KEY ? refusal : acknowledged(),
    );
    const countDelivered = async () =>
      sumOf(await fetchMetrics(stack.workerOpsUrl), "adrelay_acknowledgments", { state: "delivered" });
    const ids = await acknowledgeMany(100);
    await eventually(async () => expect(await countDelivered()).toBe(100), 15_000);
    const opened = ({ logs }: AppProcess) =>
      logs.filter(({ event, reason }) => event === "circuit_open" && reason === "auth");
    // It learns of its key when it gets two of them at the latest.
    await eventually(async () => {
      await acknowledgeMany(10);
      expect(opened(stale)).toHaveLength(1);
    });
    const posts = ids.map((id) => provider.acknowledgmentsOf(id).length);
    expect(Math.max(...posts)).toBeLessThan(6);

    const staleOps = `http://127.0.0.1:${String(stale.listening["ops_port"])}`;
    const openOf = async (opsUrl: string) =>
      sumOf(await fetchMetrics(opsUrl), "adrelay_provider_circuit_open", { reason: "auth" });
    await eventually(async () => expect(await openOf(staleOps)).toBe(1));
    expect(await openOf(stack.workerOpsUrl)).toBe(0);
    expect([...stack.apps.values()].flatMap(opened)).toEqual([]);
    const name = new RegExp(`worker \\S+/${stale.pid}`);
    const status = await adrelay("status");
    expect(status).toContain("WITH ANOTHER URL OR KEY");
    expect(status).toMatch(name);
    expect(await adrelay("doctor")).toMatch(
      new RegExp(`^warn +other_accounts: ${name.source} .+ refused`, "m"),
    );
    expect(JSON.stringify([stale.logs, status])).not.toContain(OLD_KEY);

    const before = provider.posts.length;
    await acknowledgeMany(100);
    await eventually(async () => expect(await countDelivered()).toBeGreaterThanOrEqual(210), 15_000);
    const since = provider.posts.slice(before);
    // Only its probes: one per interval, and later one per twelve.
    expect(since.filter(({ headers }) => headers["x-service-api-key"] === OLD_KEY).length).toBeLessThan(5);
  },
);

/**
 * Guards against three faults of the circuit breaker: an outage that uses up attempts, a flood of calls to a provider
 * that is down or just back, and one publisher's outage that delays the acknowledgments of another.
 * The tests mostly wait, so some run at the same time.
 */
import { startTestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type Behaviour,
  callerKeyOf,
  eventually,
  fetchMetrics,
  type PublishersFile,
  type RelayCaller,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  writePublishersFile,
} from "@adrelay/testkit";
import { describe, expect, type TestContext, test } from "vitest";

const PROBE_MS = 700;
const RATE = 60;
const OUTAGE_MS = 4000;
const FAST_RECOVERY = { RECOVERY_RATE_PER_SECOND: "5000" };
const ASYNC = { headers: { Prefer: "respond-async" } };

/** A stack of its own for one test, which ends with the test. */
async function setup({ onTestFinished }: TestContext) {
  const [redis, ofAlpha, ofBeta] = await Promise.all([
    startTestRedis(),
    startScriptedProvider(),
    startScriptedProvider(),
  ]);
  const providers = { alpha: ofAlpha, beta: ofBeta };
  const publishers = writePublishersFile([
    { id: "alpha", providerUrl: providers.alpha.url, keyEnv: "ALPHA_KEY" },
    { id: "beta", providerUrl: providers.beta.url, keyEnv: "BETA_KEY" },
  ]);
  const stack = await startRelayStack({
    redis,
    providerUrl: "http://127.0.0.1:9",
    env: settings(publishers),
  });
  onTestFinished(async () => {
    await stack.stop();
    await Promise.all([providers.alpha.close(), providers.beta.close()]);
    await redis.dispose();
    publishers.remove();
  });
  const samples = () => fetchMetrics(stack.workerOpsUrl);
  return {
    providers,
    alpha: relayCaller(stack.gatewayUrl, callerKeyOf("alpha")),
    beta: relayCaller(stack.gatewayUrl, callerKeyOf("beta")),
    workerOpsUrl: stack.workerOpsUrl,
    restartWorker: async (env: Record<string, string>) => {
      await stack.apps.get("worker")?.stop();
      await stack.start("worker", env);
    },
    samples,
    circuitEvents: () =>
      (stack.apps.get("worker")?.logs ?? [])
        .map(({ event }) => String(event))
        .filter((event) => event.startsWith("circuit_")),
    isOpen: async (provider: string, reason: string) =>
      sumOf(await samples(), "adrelay_provider_circuit_open", { provider, reason }) === 1,
    allDelivered: (count: number, timeoutMs: number) =>
      eventually(async () => {
        expect(sumOf(await samples(), "adrelay_acknowledgments", { state: "delivered" })).toBe(count);
      }, timeoutMs),
  };
}

const settings = ({ path }: PublishersFile) => ({
  API_KEYS: "",
  PUBLISHERS_FILE: path,
  ALPHA_KEY: "key-of-alpha",
  BETA_KEY: "key-of-beta",
  BREAKER_PROBE_INTERVAL_MS: String(PROBE_MS),
  RECOVERY_RATE_PER_SECOND: String(RATE),
  WORKER_CONCURRENCY: "10",
  DELIVERY_TIMEOUT_MS: "3000",
  RETRY_SCHEDULE: "100ms,1s",
  // A busy machine gets no fallbacks, which can't be acknowledged.
  INJECTION_TIMEOUT_MS: "30000",
});

function injectMany(caller: RelayCaller, count: number): Promise<string[]> {
  return Promise.all(Array.from({ length: count }, () => caller.injectUntilFilled()));
}

async function acknowledgeAll(caller: RelayCaller, ids: readonly string[]): Promise<void> {
  const answers = await Promise.all(
    ids.map((id) => caller.acknowledgeUntilAccepted(id, `text of ${id}`, ASYNC)),
  );
  expect(new Set(answers.map(({ status }) => status))).toEqual(new Set([201]));
}

const acknowledgments = ({ posts }: ScriptedProvider) =>
  posts.filter(({ operation }) => operation === "acknowledge");
const REFUSALS = [
  // All come again soon: 401 is about the key.
  [{ kind: "answer", status: 401 }, 40, 15],
  [{ kind: "answer", status: 403, body: { code: "key_revoked" } }, 40, 15],
  // Each of the first may be about its acknowledgment, so they wait for five minutes.
  [{ kind: "answer", status: 403 }, 4, 36],
] as const satisfies readonly (readonly [Behaviour, number, number])[];

describe.concurrent("with one publisher in trouble", () => {
  test("an outage uses up only attempts under way, and is probed once per interval", async (context) => {
    const { alpha, providers, allDelivered, circuitEvents, isOpen } = await setup(context);
    const ids = await injectMany(alpha, 120);
    providers.alpha.onAcknowledge(() => ({ kind: "answer", status: 503 }));
    await acknowledgeAll(alpha, ids);
    await eventually(async () => expect(await isOpen("alpha", "outage")).toBe(true));
    const openedAtMs = performance.now();
    const before = acknowledgments(providers.alpha).length;
    await eventually(
      () => expect(performance.now() - openedAtMs).toBeGreaterThan(OUTAGE_MS),
      OUTAGE_MS + 1000,
    );
    const probes = acknowledgments(providers.alpha).length - before;
    expect(probes).toBeGreaterThan(2);
    // Attempts that were under way when it opened may still arrive: the last addend.
    expect(probes).toBeLessThanOrEqual(OUTAGE_MS / PROBE_MS + 1 + 10);

    const backAtMs = performance.now();
    providers.alpha.onAcknowledge(() => acknowledged());
    await allDelivered(120, 60_000);
    const after = acknowledgments(providers.alpha).filter(({ atMs }) => atMs >= backAtMs);
    const inSecondFrom = (fromMs: number) =>
      after.filter(({ atMs }) => atMs >= fromMs && atMs < fromMs + 1000).length;
    expect(Math.max(...after.map(({ atMs }) => inSecondFrom(atMs)))).toBeLessThanOrEqual(RATE);
    const posts = ids.map((id) => providers.alpha.acknowledgmentsOf(id).length);
    expect(posts.filter((count) => count === 1).length).toBeGreaterThan(80);
    await eventually(async () => expect(await isOpen("alpha", "outage")).toBe(false));
    await eventually(() =>
      expect(circuitEvents()).toEqual(["circuit_open", "circuit_recovering", "circuit_closed"]),
    );
  });

  test.for([
    ["refuses its key", { kind: "answer", status: 401 }],
    ["hangs", { kind: "hang" }],
    ["answers 500", { kind: "answer", status: 500 }],
  ] as const satisfies readonly (readonly [string, Behaviour])[])(
    "a provider that %s delays no other publisher",
    async ([_name, behaviour], context) => {
      const { alpha, beta, providers, restartWorker, allDelivered } = await setup(context);
      const [ofAlpha, ofBeta] = [await injectMany(alpha, 150), await injectMany(beta, 20)];
      providers.alpha.onAcknowledge(() => behaviour);
      await acknowledgeAll(alpha, ofAlpha);
      const answers = await Promise.all(
        ofBeta.map((id) => beta.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=10" } })),
      );
      expect(new Set(answers.map(({ body }) => body["status"]))).toEqual(new Set(["ok"]));
      expect(Math.max(...answers.map(({ durationMs }) => durationMs))).toBeLessThan(2900);
      providers.alpha.onAcknowledge(() => acknowledged());
      await restartWorker(FAST_RECOVERY);
      await allDelivered(170, 60_000);
    },
  );

  test("a worker stays ready while a provider is down, and names it", async (context) => {
    const { alpha, providers, workerOpsUrl, restartWorker, allDelivered } = await setup(context);
    const ids = await injectMany(alpha, 20);
    providers.alpha.onAcknowledge(() => ({ kind: "answer", status: 401 }));
    await acknowledgeAll(alpha, ids);
    const readiness = async () => {
      const response = await fetch(`${workerOpsUrl}/readyz`);
      return { status: response.status, body: await response.json() };
    };
    await eventually(async () =>
      expect(await readiness()).toMatchObject({
        status: 200,
        body: {
          status: "ready",
          warnings: { provider_alpha: expect.stringContaining("circuit breaker is open") },
        },
      }),
    );
    providers.alpha.onAcknowledge(() => acknowledged());
    await restartWorker(FAST_RECOVERY);
    await allDelivered(20, 60_000);
    await eventually(async () => expect((await readiness()).body).not.toHaveProperty("warnings"));
  });

  test.for(REFUSALS)(
    "after a key refused with %j is corrected, restarted workers deliver again",
    async ([refusal, deliveredMin, refusedMax], context) => {
      const { alpha, providers, restartWorker, samples, isOpen } = await setup(context);
      const ids = await injectMany(alpha, 40);
      providers.alpha.onAcknowledge(({ headers }) =>
        headers["x-service-api-key"] === "corrected" ? acknowledged() : refusal,
      );
      await acknowledgeAll(alpha, ids);
      await eventually(async () => expect(await isOpen("alpha", "auth")).toBe(true));
      expect(acknowledgments(providers.alpha).length).toBeLessThanOrEqual(refusedMax);
      await restartWorker({ ALPHA_KEY: "corrected", ...FAST_RECOVERY });
      await eventually(async () => {
        const delivered = sumOf(await samples(), "adrelay_acknowledgments", { state: "delivered" });
        expect(delivered).toBeGreaterThanOrEqual(deliveredMin);
      }, 30_000);
    },
  );

  test("three acknowledgments answered 429 pause the whole account for the Retry-After", async (context) => {
    const { alpha, providers, allDelivered, isOpen } = await setup(context);
    const ids = await injectMany(alpha, 37);
    const [steady, throttledIds, others] = [ids.slice(0, 30), ids.slice(30, 33), ids.slice(33)];
    await acknowledgeAll(alpha, steady);
    await allDelivered(30, 20_000);
    providers.alpha.onAcknowledge(() =>
      acknowledgments(providers.alpha).length <= 33
        ? { kind: "answer", status: 429, headers: { "Retry-After": "3" } }
        : acknowledged(),
    );
    await acknowledgeAll(alpha, throttledIds);
    await eventually(async () => expect(await isOpen("alpha", "throttled")).toBe(true));
    await acknowledgeAll(alpha, others);
    await allDelivered(37, 20_000);
    const [throttled, next] = acknowledgments(providers.alpha).slice(32);
    expect((next?.atMs ?? 0) - (throttled?.atMs ?? 0)).toBeGreaterThan(2900);
  });

  test("a waiting caller gets its answer early while its provider is down", async (context) => {
    const { alpha, providers, isOpen } = await setup(context);
    const [first, ...others] = await injectMany(alpha, 30);
    providers.alpha.onAcknowledge(() => ({ kind: "answer", status: 503 }));
    await acknowledgeAll(alpha, others);
    await eventually(async () => expect(await isOpen("alpha", "outage")).toBe(true));
    const answer = await alpha.acknowledge(first, "text", { headers: { Prefer: "wait=20" } });
    expect(answer.body["status"]).toBe("recoverable_error");
    expect(answer.durationMs).toBeLessThan(5000);
  });
});

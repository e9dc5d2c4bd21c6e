/**
 * Guards against a circuit breaker that takes what one acknowledgment or one publisher meets for the state of the whole
 * provider account, and against a flaky provider that is taken for one that is down.
 * Tests that mostly wait run at the same time.
 */
import { startTestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type Behaviour,
  callerKeyOf,
  eventually,
  fetchLedgerMetrics,
  makeRandom,
  type RelayCaller,
  relayCaller,
  type Script,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  unknownId,
  writePublishersFile,
} from "@adrelay/testkit";
import { describe, expect, type TestContext, test } from "vitest";

const ASYNC = { headers: { Prefer: "respond-async" } };
const PATIENT = { headers: { Prefer: "wait=10" } };
/** They share one provider account. */
const PUBLISHERS = ["alpha", "beta", "gamma"] as const;
type PublisherName = (typeof PUBLISHERS)[number];

/** A stack of its own for one test, which ends with the test. */
async function setup({ onTestFinished }: TestContext, env: Record<string, string> = {}) {
  const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const publishers = writePublishersFile(
    PUBLISHERS.map((id) => ({ id, providerUrl: provider.url, keyEnv: "SHARED_KEY" })),
  );
  const shared = {
    API_KEYS: "",
    PUBLISHERS_FILE: publishers.path,
    SHARED_KEY: "key-of-the-account",
    // No attempt of a busy machine runs into its time limit.
    DELIVERY_TIMEOUT_MS: "10000",
  };
  const providerUrl = "http://127.0.0.1:9";
  const stack = await startRelayStack({ redis, providerUrl, env: { ...shared, ...env } });
  onTestFinished(async () => {
    await stack.stop();
    await Promise.all([provider.close(), redis.dispose()]);
    publishers.remove();
  });
  /** Which publisher acknowledged an id. */
  const ownerOf = new Map<string, PublisherName>();
  const callerOf = (of: PublisherName): RelayCaller => relayCaller(stack.gatewayUrl, callerKeyOf(of));
  const samples = () => fetchLedgerMetrics(stack.workerOpsUrl);
  const countIn = async (state: string, publisher?: PublisherName) =>
    sumOf(await samples(), "adrelay_acknowledgments", { state, ...(publisher && { publisher }) });
  return {
    provider,
    callerOf,
    samples,
    countIn,
    acknowledge: async (of: PublisherName, count: number) => {
      const ids = Array.from({ length: count }, unknownId);
      for (const id of ids) {
        ownerOf.set(id, of);
      }
      const caller = callerOf(of);
      const answers = await Promise.all(ids.map((id) => caller.acknowledgeUntilAccepted(id, "text", ASYNC)));
      expect(answers.every(({ status }) => status === 200 || status === 201)).toBe(true);
    },
    openings: () => (stack.apps.get("worker")?.logs ?? []).filter(({ event }) => event === "circuit_open"),
    delivered: (count: number, timeoutMs = 20_000, publisher?: PublisherName) =>
      eventually(async () => expect(await countIn("delivered", publisher)).toBe(count), timeoutMs),
    /** A provider that answers one publisher with `behaviour`, and takes what the others acknowledge. */
    answersOf:
      (of: PublisherName, behaviour: Behaviour): Script =>
      ({ fields }) =>
        ownerOf.get(String(fields["ad_response_id"])) === of ? behaviour : acknowledged(),
  };
}

const throttledFor = (seconds: number): Behaviour => ({
  kind: "answer",
  status: 429,
  headers: { "Retry-After": String(seconds) },
});

describe.concurrent("tests that mostly wait", () => {
  test("if only one publisher fails for half a minute, the others' acknowledgments still go out at once", async (context) => {
    const env = { RETRY_SCHEDULE: "500ms", BREAKER_PROBE_INTERVAL_MS: "60000" };
    const { provider, acknowledge, answersOf, delivered, openings } = await setup(context, env);
    provider.onAcknowledge(answersOf("alpha", { kind: "answer", status: 500 }));
    await acknowledge("alpha", 10);
    await eventually(() => expect(openings()).toMatchObject([{ reason: "outage" }]), 45_000);
    await acknowledge("beta", 5);
    await delivered(5, 15_000, "beta");
  });

  test.for(["2", "10"])(
    "hanging calls of one publisher leave slots for the others, with %s slots",
    async (slots, context) => {
      const env = { WORKER_CONCURRENCY: slots, DELIVERY_TIMEOUT_MS: "4000" };
      const { provider, acknowledge, answersOf, callerOf } = await setup(context, env);
      provider.onAcknowledge(answersOf("alpha", { kind: "hang" }));
      await acknowledge("alpha", 60);
      const beta = callerOf("beta");
      // Longer than three attempts take, so that the slots have become fewer.
      const untilMs = performance.now() + 13_000;
      while (performance.now() < untilMs) {
        const answer = await beta.acknowledgeUntilAccepted(unknownId(), "text", PATIENT);
        expect(answer.body["status"]).toBe("ok");
        expect(answer.durationMs).toBeLessThan(3900);
      }
    },
  );

  test.for([
    ["429 with Retry-After 60", throttledFor(60), "exhausted"],
    ["500", { kind: "answer", status: 500 }, "exhausted"],
    ["403 of the service", { kind: "answer", status: 403, body: { code: "other_publisher" } }, "forbidden"],
    ["no connection", { kind: "reset" }, "exhausted"],
  ] as const)(
    "one acknowledgment always answered with %s puts off only itself, and ends at its age",
    async ([_name, behaviour, reason], context) => {
      const stack = await setup(context, { DELIVERY_MAX_AGE: "4s" });
      const { provider, acknowledge, callerOf, countIn, delivered, openings } = stack;
      const bad = unknownId();
      provider.onAcknowledge(({ fields }) => (fields["ad_response_id"] === bad ? behaviour : acknowledged()));
      await callerOf("alpha").acknowledgeUntilAccepted(bad, "text", ASYNC);
      await eventually(() => expect(provider.acknowledgmentsOf(bad).length).toBeGreaterThan(0));
      await acknowledge("alpha", 365);
      await delivered(365, 60_000);
      await eventually(async () => expect(await countIn("dead")).toBe(1));
      expect(sumOf(await stack.samples(), "adrelay_acknowledgments_dead_total", { reason })).toBe(1);
      expect(openings()).toEqual([]);
    },
  );
});

test.for([
  ["403 of the service", { kind: "answer", status: 403, body: { code: "forbidden" } }],
  ["403 with a page", { kind: "raw", status: 403, bytes: "<h1>Forbidden</h1>" }],
  ["429", throttledFor(30)],
] as const)(
  "one publisher's acknowledgments answered with %s don't touch the others of its account",
  async ([_name, behaviour], context) => {
    const { provider, acknowledge, answersOf, countIn, delivered, openings } = await setup(context);
    provider.onAcknowledge(answersOf("alpha", behaviour));
    for (let round = 1; round <= 5; round += 1) {
      await acknowledge("alpha", 6);
      await Promise.all([acknowledge("beta", 5), acknowledge("gamma", 5)]);
      await delivered(10 * round, 15_000);
    }
    expect(openings()).toEqual([]);
    expect(await countIn("queued", "alpha")).toBe(30);
  },
);

test("429 for several publishers pauses their account, and nothing goes out before the Retry-After", async (context) => {
  const { provider, acknowledge, delivered, openings } = await setup(context);
  // A provider that has taken all for a while.
  provider.onAcknowledge(() => acknowledged());
  await acknowledge("alpha", 30);
  await delivered(30);
  provider.onAcknowledge(() => throttledFor(3));
  await Promise.all([acknowledge("alpha", 2), acknowledge("beta", 2)]);
  await eventually(() => expect(openings()).toMatchObject([{ reason: "throttled" }]));
  provider.onAcknowledge(() => acknowledged());
  const before = provider.posts.length;
  const throttledAtMs = provider.posts.at(-1)?.atMs ?? 0;
  await acknowledge("gamma", 20);
  await delivered(54);
  expect((provider.posts[before]?.atMs ?? 0) - throttledAtMs).toBeGreaterThan(2500);
});

test.for([30, 60, 80])(
  "a provider that fails %i percent of its calls at random gets all, without an outage",
  async (percent, context) => {
    const env = { RETRY_SCHEDULE: "100ms,200ms,400ms" };
    const { provider, acknowledge, countIn, openings, samples } = await setup(context, env);
    const random = makeRandom(`flaky ${percent}`);
    const failures: readonly Behaviour[] = [
      { kind: "answer", status: 500 },
      { kind: "answer", status: 503 },
      { kind: "reset" },
      { kind: "raw", status: 502, bytes: "<h1>Bad Gateway</h1>" },
    ];
    provider.onAcknowledge(() => (random.chance(percent / 100) ? random.pick(failures) : acknowledged()));
    await Promise.all([acknowledge("alpha", 300), acknowledge("beta", 238)]);
    let fewest = Number.POSITIVE_INFINITY;
    await eventually(async () => {
      fewest = Math.min(fewest, sumOf(await samples(), "adrelay_delivery_concurrency_limit"));
      expect(await countIn("delivered")).toBe(538);
    }, 100_000);
    expect(openings()).toEqual([]);
    expect(await countIn("dead")).toBe(0);
    // With fewer failures all may be delivered before the limit has been seen.
    if (percent > 30) {
      expect(fewest).toBeLessThan(50);
    }
  },
);

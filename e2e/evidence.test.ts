/**
 * Guards against a circuit breaker that takes what one acknowledgment or one publisher meets for the state of the whole
 * provider account, and against a flaky provider that is taken for one that is down.
 * Tests with the same settings share a stack, in which each has a provider account of its own. Tests that mostly wait run at
 * the same time.
 */
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
  sumOf,
  unknownId,
} from "@adrelay/testkit";
import { describe, expect, test } from "vitest";
import { type OwnPart, shareStack } from "./shared-stack.ts";

const ASYNC = { headers: { Prefer: "respond-async" } };
const PATIENT = { headers: { Prefer: "wait=10" } };
/** They share one provider account. */
const PUBLISHERS = ["alpha", "beta", "gamma"] as const;
type PublisherName = (typeof PUBLISHERS)[number];

/** A stack for the tests of one `describe`. Returns what gives each of them its account. */
function shareAccounts(tests: number, env: Record<string, string> = {}): () => ReturnType<typeof setup> {
  const takePart = shareStack({
    tests,
    publishers: PUBLISHERS,
    // No attempt of a busy machine runs into its time limit.
    env: { DELIVERY_TIMEOUT_MS: "10000", ...env },
  });
  return () => setup(takePart());
}

/** A provider account and its three publishers, for one test. */
function setup({ relay, provider, idOf }: OwnPart) {
  /** Which publisher acknowledged an id. */
  const ownerOf = new Map<string, PublisherName>();
  const callerOf = (of: PublisherName): RelayCaller => relayCaller(relay.gatewayUrl, callerKeyOf(idOf(of)));
  const samples = () => fetchLedgerMetrics(relay.workerOpsUrl);
  /** Of all publishers of the account, unless one is named. */
  const sumOfOwn = async (metric: string, labels: Record<string, string>, only?: PublisherName) => {
    const all = await samples();
    const names: readonly PublisherName[] = only === undefined ? PUBLISHERS : [only];
    return names.reduce((sum, name) => sum + sumOf(all, metric, { ...labels, publisher: idOf(name) }), 0);
  };
  const countIn = (state: string, only?: PublisherName) =>
    sumOfOwn("adrelay_acknowledgments", { state }, only);
  return {
    provider,
    callerOf,
    countIn,
    deadFor: (reason: string) => sumOfOwn("adrelay_acknowledgments_dead_total", { reason }),
    /** How many attempts the worker may make at the same time at the provider, which bears the name of its first publisher. */
    slots: async () =>
      sumOf(await samples(), "adrelay_delivery_concurrency_limit", { provider: idOf("alpha") }),
    acknowledge: async (of: PublisherName, count: number) => {
      const ids = Array.from({ length: count }, unknownId);
      for (const id of ids) {
        ownerOf.set(id, of);
      }
      const caller = callerOf(of);
      const answers = await Promise.all(ids.map((id) => caller.acknowledgeUntilAccepted(id, "text", ASYNC)));
      expect(answers.every(({ status }) => status === 200 || status === 201)).toBe(true);
    },
    openings: () =>
      (relay.apps.get("worker")?.logs ?? []).filter(
        (line) => line["event"] === "circuit_open" && line["provider"] === idOf("alpha"),
      ),
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

describe.concurrent("with probes a minute apart", () => {
  const takeAccount = shareAccounts(1, { RETRY_SCHEDULE: "500ms", BREAKER_PROBE_INTERVAL_MS: "60000" });

  test("if only one publisher fails for half a minute, the others' acknowledgments still go out at once", async () => {
    const { provider, acknowledge, answersOf, delivered, openings } = takeAccount();
    provider.onAcknowledge(answersOf("alpha", { kind: "answer", status: 500 }));
    await acknowledge("alpha", 10);
    await eventually(() => expect(openings()).toMatchObject([{ reason: "outage" }]), 45_000);
    await acknowledge("beta", 5);
    await delivered(5, 15_000, "beta");
  });
});

describe.concurrent.each(["2", "10"])("with %s slots", (slots) => {
  const takeAccount = shareAccounts(1, { WORKER_CONCURRENCY: slots, DELIVERY_TIMEOUT_MS: "4000" });

  test("hanging calls of one publisher leave slots for the others", async () => {
    const { provider, acknowledge, answersOf, callerOf } = takeAccount();
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
  });
});

describe.concurrent("with acknowledgments that end after 4 s", () => {
  const takeAccount = shareAccounts(4, { DELIVERY_MAX_AGE: "4s" });

  test.for([
    ["429 with Retry-After 60", throttledFor(60), "exhausted"],
    ["500", { kind: "answer", status: 500 }, "exhausted"],
    ["403 of the service", { kind: "answer", status: 403, body: { code: "other_publisher" } }, "forbidden"],
    ["no connection", { kind: "reset" }, "exhausted"],
  ] as const)(
    "one acknowledgment always answered with %s puts off only itself, and ends at its age",
    async ([_name, behaviour, reason]) => {
      const { provider, acknowledge, callerOf, countIn, deadFor, delivered, openings } = takeAccount();
      const bad = unknownId();
      provider.onAcknowledge(({ fields }) => (fields["ad_response_id"] === bad ? behaviour : acknowledged()));
      await callerOf("alpha").acknowledgeUntilAccepted(bad, "text", ASYNC);
      await eventually(() => expect(provider.acknowledgmentsOf(bad).length).toBeGreaterThan(0));
      await acknowledge("alpha", 365);
      await delivered(365, 60_000);
      await eventually(async () => expect(await countIn("dead")).toBe(1));
      expect(await deadFor(reason)).toBe(1);
      expect(openings()).toEqual([]);
    },
  );
});

describe("with one publisher or several in trouble", () => {
  const takeAccount = shareAccounts(4);

  test.for([
    ["403 of the service", { kind: "answer", status: 403, body: { code: "forbidden" } }],
    ["403 with a page", { kind: "raw", status: 403, bytes: "<h1>Forbidden</h1>" }],
    ["429", throttledFor(30)],
  ] as const)(
    "one publisher's acknowledgments answered with %s don't touch the others of its account",
    async ([_name, behaviour]) => {
      const { provider, acknowledge, answersOf, countIn, delivered, openings } = takeAccount();
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

  test("429 for several publishers pauses their account, and nothing goes out before the Retry-After", async () => {
    const { provider, acknowledge, delivered, openings } = takeAccount();
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
});

describe("with a provider that fails at times", () => {
  const takeAccount = shareAccounts(3, { RETRY_SCHEDULE: "100ms,200ms,400ms" });

  test.for([30, 60, 80])(
    "a provider that fails %i percent of its calls at random gets all, without an outage",
    async (percent) => {
      const { provider, acknowledge, countIn, openings, slots } = takeAccount();
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
        fewest = Math.min(fewest, await slots());
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
});

/**
 * Guards the promise that the relay works on each supported Redis: the whole way of an acknowledgment, with real
 * processes, on the oldest and on the newest server that can be fetched.
 */
import { ADMIN_PATH, doctorReportSchema } from "@adrelay/contract";
import { PINNED_SERVERS, pinnedTestEnv, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  fetchMetrics,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startApp,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";

const ASYNC = { headers: { Prefer: "respond-async" } };
const ACK_DEADLINE_MS = 1500;
/** Long enough for a loaded machine to take Redis away meanwhile. */
const PROVIDER_TAKES_MS = 1000;

const servers = await Promise.all(
  PINNED_SERVERS.map(async ({ way, title }) => {
    const pinned = await pinnedTestEnv(way, () => {});
    return { title, ...pinned };
  }),
);

test.for(servers.filter(({ kind }) => kind !== "ready"))(
  "on $title nothing is tested: $why",
  ({ kind }, { skip }) => {
    expect(kind).toBe("not_here");
    skip();
  },
);

describe.each(servers.filter((server) => server.kind === "ready"))("on $title", ({ env, title }) => {
  let server: TestRedis;
  let redis: Redis;
  let provider: ScriptedProvider;
  let stack: RelayStack;
  let caller: RelayCaller;

  beforeAll(async () => {
    [server, provider] = await Promise.all([
      startTestRedis(["--maxmemory", "1gb"], env),
      startScriptedProvider(),
    ]);
    redis = new Redis(server.url);
    redis.on("error", () => {});
    const settings = {
      ACK_DEADLINE_MS: String(ACK_DEADLINE_MS),
      DELIVERY_TIMEOUT_MS: "5000",
      REDIS_DURABILITY: "strict",
    };
    stack = await startRelayStack({ redis: server, providerUrl: provider.url, env: settings });
    caller = relayCaller(stack.gatewayUrl);
  });
  afterAll(async () => {
    await stack.stop();
    await provider.close();
    redis.disconnect();
    await server.dispose();
  });
  beforeEach(() => provider.onAcknowledge(() => acknowledged()));

  const injected = () => caller.injectUntilFilled();
  const accepted = async () => {
    const id = await injected();
    await caller.acknowledgeUntilAccepted(id, "text", ASYNC);
    return id;
  };
  const becomes = (id: string, state: string) =>
    eventually(async () => expect((await caller.lookUp(id)).body).toMatchObject({ state }));
  const admin = async (path: string, method = "POST", body: unknown = {}) => {
    const response = await fetch(stack.gatewayOpsUrl + ADMIN_PATH + path, {
      method,
      headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}`, "Content-Type": "application/json" },
      ...(method === "GET" ? {} : { body: JSON.stringify(body) }),
    });
    expect(response.status).toBeLessThan(300);
    return Object(await response.json());
  };
  const dead = async () => {
    provider.onAcknowledge(() => ({ kind: "answer", status: 422 }));
    const id = await accepted();
    await becomes(id, "dead");
    provider.onAcknowledge(() => acknowledged());
    return id;
  };
  const expectBalance = async () => {
    for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
      const samples = await fetchMetrics(url);
      expect(samples.get("adrelay_books_imbalance")).toBe(0);
      expect(samples.get("adrelay_redis_durable")).toBe(1);
      expect(samples.get("adrelay_redis_data_losses_total")).toBe(0);
    }
  };

  test("an acknowledgment is delivered on the second attempt, and repeats are not accepted again", async () => {
    provider.onAcknowledge((_post, count) =>
      count === 0 ? { kind: "answer", status: 503 } : acknowledged("no_ad_used"),
    );
    const id = await injected();
    const answers = [
      await caller.acknowledgeUntilAccepted(id, "text", ASYNC),
      await caller.acknowledgeUntilAccepted(id, "text", ASYNC),
      await caller.acknowledgeUntilAccepted(id, "another text", ASYNC),
    ];
    expect(answers.map(({ status }) => status)).toEqual([201, expect.toBeOneOf([200, 201]), 409]);
    await becomes(id, "delivered");
    expect((await caller.lookUp(id)).body).toMatchObject({ attempts: 2 });
    expect(provider.acknowledgmentsOf(id)).toHaveLength(2);
  });

  test("a caller that waits gets the provider's verdict", async () => {
    const patient = { headers: { Prefer: "wait=10" } };
    const answer = await caller.acknowledgeUntilAccepted(await injected(), "text", patient);
    expect(answer.body).toMatchObject({ status: "ok" });
  });

  test("an acknowledgment that the provider answers with 406 is refused", async () => {
    provider.onAcknowledge(() => ({ kind: "answer", status: 406 }));
    await becomes(await accepted(), "refused");
  });

  test("dead letters are listed, replayed one by one and together, discarded and audited", async () => {
    const [replayed, discarded, first, second] = [await dead(), await dead(), await dead(), await dead()];
    const listed = JSON.stringify(await admin("/acknowledgments?state=dead", "GET"));
    expect([replayed, discarded, first, second].filter((id) => !listed.includes(id))).toEqual([]);
    expect(await admin(`/acknowledgments/${replayed}/replay`)).toMatchObject({ state: "queued" });
    await becomes(replayed, "delivered");
    const reason = { reason: "gone stale" };
    expect(await admin(`/acknowledgments/${discarded}/discard`, "POST", reason)).toMatchObject({
      state: "discarded",
    });
    const { matched } = await admin("/replays", "POST", { rate_per_second: 100 });
    expect(matched).toBeGreaterThanOrEqual(2);
    await becomes(first, "delivered");
    await becomes(second, "delivered");
    const { entries } = await admin("/audit", "GET");
    const actions = entries.slice(0, 4).map(({ action }: { action: string }) => action);
    expect(actions).toEqual(["replays_end", "replays_start", "discard", "replay"]);
  });

  test("an injection without an acknowledgment is missed, and a late one is delivered", async () => {
    const id = await injected();
    await becomes(id, "missed");
    await caller.acknowledgeUntilAccepted(id, "text", ASYNC);
    await becomes(id, "delivered");
    expect((await caller.lookUp(id)).body).toMatchObject({ late: true });
  });

  test("a circuit breaker opens in an outage and closes after it", async () => {
    provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
    const ids = await Promise.all(Array.from({ length: 30 }, accepted));
    const openCircuits = async () =>
      sumOf(await fetchMetrics(stack.workerOpsUrl), "adrelay_provider_circuit_open");
    await eventually(async () => expect(await openCircuits()).toBe(1));
    provider.onAcknowledge(() => acknowledged());
    await Promise.all(ids.map((id) => becomes(id, "delivered")));
    await eventually(async () => expect(await openCircuits()).toBe(0));
  });

  test("a Redis that is a replica for a while delays bookings, and intake answers 503 meanwhile", async () => {
    provider.onAcknowledge(() => ({ kind: "late", delayMs: PROVIDER_TAKES_MS, answer: acknowledged() }));
    const [id, waiting] = [await accepted(), await injected()];
    await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
    await redis.replicaof("127.0.0.1", 1);
    expect((await caller.acknowledge(waiting, "text")).body).toMatchObject({ code: "queue_unavailable" });
    const worker = stack.apps.get("worker");
    const message = expect.stringContaining("READONLY");
    const booking = (event: string, more = {}) => expect.objectContaining({ event, ...more });
    await eventually(() =>
      expect(worker?.logs).toContainEqual(
        booking("booking_refused", { err: expect.objectContaining({ message }) }),
      ),
    );
    await redis.replicaof("NO", "ONE");
    await becomes(id, "delivered");
    await eventually(() => expect(worker?.logs).toContainEqual(booking("booking_resumed")));
    expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
    await caller.acknowledgeUntilAccepted(waiting, "text", ASYNC);
    await becomes(waiting, "delivered");
  });

  test("a full Redis books the outcomes of attempts, and intake answers 503 meanwhile", async () => {
    provider.onAcknowledge(() => ({ kind: "late", delayMs: PROVIDER_TAKES_MS, answer: acknowledged() }));
    const [id, waiting] = [await accepted(), await injected()];
    await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
    await redis.config("SET", "maxmemory", "1");
    expect((await caller.acknowledge(waiting, "text")).body).toMatchObject({ code: "storage_full" });
    await becomes(id, "delivered");
    expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
    await redis.config("SET", "maxmemory", "0");
    await caller.acknowledgeUntilAccepted(waiting, "text", ASYNC);
    await becomes(waiting, "delivered");
  });

  test("a crash of Redis loses nothing, and the counters balance", async () => {
    const id = await accepted();
    await becomes(id, "delivered");
    const letter = await dead();
    await server.crash();
    await server.restart();
    await becomes(id, "delivered");
    await becomes(letter, "dead");
    await eventually(expectBalance);
  });

  test("doctor finds no fault, and names the server", async () => {
    await eventually(async () => {
      const { checks } = doctorReportSchema.parse(await admin("/doctor", "GET"));
      const faults = checks.filter(({ status, name }) => status !== "ok" && name !== "dead_letters");
      expect(faults).toEqual([]);
      expect(checks.find(({ name }) => name === "redis")?.detail).toContain(`${title}.`);
    });
  });

  test("lost data are noticed by the next heartbeat", async () => {
    await redis.flushall();
    await eventually(async () => {
      const samples = await fetchMetrics(stack.gatewayOpsUrl);
      expect(samples.get("adrelay_redis_data_losses_total")).toBe(1);
    });
    await becomes(await accepted(), "delivered");
  });

  test("a server that would lose data is refused at the start", async () => {
    const careless = await startTestRedis(["--maxmemory-policy", "allkeys-lru"], env);
    const needed = {
      REDIS_URL: careless.url,
      API_KEYS: "key-for-this-test",
      PROVIDER_URL: provider.url,
      PROVIDER_API_KEY: "k",
    };
    try {
      await expect(startApp("worker", { ...needed, WORKER_OPS_PORT: "0" })).rejects.toThrow(
        "maxmemory-policy is allkeys-lru",
      );
    } finally {
      await careless.dispose();
    }
  });
});

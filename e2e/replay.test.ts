/**
 * Guards against a dead letter that a replay loses, doubles or blocks: workers are killed during a bulk replay, earlier
 * attempts stalled, texts are missing, letters expire.
 */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  fetchLedgerMetrics,
  fetchMetrics,
  filled,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeEach(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  provider.onStart(() => filled());
});
afterEach(async () => {
  await stack.stop();
  await provider.close();
  await redis.dispose();
});

async function startStack(env: Record<string, string> = {}): Promise<void> {
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl);
}

async function admin(method: "GET" | "POST", path: string, body?: unknown): Promise<Record<string, unknown>> {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return Object(await response.json());
}

async function acknowledge(): Promise<string> {
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  return id;
}

async function countIn(state: string): Promise<number> {
  return sumOf(await fetchLedgerMetrics(stack.gatewayOpsUrl), "adrelay_acknowledgments", { state });
}

const becomes = (id: string, state: string, timeoutMs = 20_000) =>
  eventually(async () => expect((await caller.lookUp(id)).body["state"]).toBe(state), timeoutMs);

async function deadLetters(count: number): Promise<string[]> {
  const ids: string[] = [];
  const lane = async () => {
    while (ids.length < count) {
      ids.push(await acknowledge());
    }
  };
  await Promise.all(Array.from({ length: 8 }, lane));
  await eventually(async () => expect(await countIn("dead")).toBe(ids.length), 20_000);
  return ids;
}

test("a bulk replay survives killed workers and requeues no letter twice", async () => {
  const concurrency = 10;
  await startStack({ WORKER_CONCURRENCY: String(concurrency) });
  const answers = [{ kind: "answer", status: 422 } as const, acknowledged()];
  provider.onAcknowledge((_post, count) => answers[count] ?? { kind: "answer", status: 409 });
  const ids = await deadLetters(400);
  const { replay_id: id } = await admin("POST", "/replays", { rate_per_second: 200 });
  const replayed = async () => Number((await admin("GET", `/replays/${id}`))["replayed"]);
  for (const share of [0.25, 0.5, 0.75]) {
    await eventually(async () => expect(await replayed()).toBeGreaterThan(ids.length * share), 20_000);
    // The second worker is stopped by SIGTERM and must end within its limit. The others are killed.
    if (share === 0.5) {
      expect(await stack.apps.get("worker")?.stop()).toBe(0);
    } else {
      await stack.crash("worker");
    }
    await stack.start("worker");
  }
  await eventually(async () => expect(await countIn("delivered")).toBe(ids.length), 60_000);
  await eventually(async () =>
    expect(await admin("GET", `/replays/${id}`)).toMatchObject({
      state: "completed",
      matched: ids.length,
      replayed: ids.length,
    }),
  );
  const posts = ids.map((letter) => provider.acknowledgmentsOf(letter));
  expect(posts.filter((of) => of.length < 2)).toEqual([]);
  // An attempt whose worker was killed is repeated with the same idempotency key.
  expect(posts.filter((of) => of.length > 2).length).toBeLessThanOrEqual(3 * concurrency);
  const keys = posts.map((of) => new Set(of.map(({ headers }) => headers["idempotency-key"])).size);
  expect(new Set(keys)).toEqual(new Set([1]));
  const samples = await fetchLedgerMetrics(stack.gatewayOpsUrl);
  expect(sumOf(samples, "adrelay_acknowledgments_replayed_total")).toBe(ids.length);
});

test("two workers share one bulk replay and keep to its rate", async () => {
  await startStack();
  const first = stack.apps.get("worker");
  await stack.start("worker", { WORKER_OPS_PORT: "0" });
  provider.onAcknowledge((_post, count) => (count === 0 ? { kind: "answer", status: 422 } : acknowledged()));
  const ids = await deadLetters(60);
  const started = await admin("POST", "/replays", { rate_per_second: 40 });
  await eventually(async () => expect(await countIn("delivered")).toBe(ids.length), 20_000);
  const ended = await eventually(async () => {
    const shown = await admin("GET", `/replays/${started["replay_id"]}`);
    expect(shown).toMatchObject({ state: "completed", replayed: ids.length });
    return shown;
  });
  const tookMs = Date.parse(String(ended["ended_at"])) - Date.parse(String(ended["created_at"]));
  expect(tookMs).toBeGreaterThanOrEqual((1000 * ids.length) / 40);
  expect(ids.filter((id) => provider.acknowledgmentsOf(id).length !== 2)).toEqual([]);
  await first?.stop();
});

test("a letter whose attempts stalled gets all attempts again after each replay", async () => {
  await startStack();
  provider.onAcknowledge(() => ({ kind: "hang" }));
  const id = await acknowledge();
  for (let stall = 1; stall <= 2; stall += 1) {
    await eventually(
      () => expect(provider.acknowledgmentsOf(id).length).toBeGreaterThanOrEqual(stall),
      30_000,
    );
    await stack.crash("worker");
    await stack.start("worker");
  }
  provider.onAcknowledge(() => ({ kind: "answer", status: 422 }));
  await becomes(id, "dead", 30_000);
  for (let replay = 1; replay <= 2; replay += 1) {
    const before = provider.acknowledgmentsOf(id).length;
    const isLast = (count: number) => count === before + 3;
    const end = replay === 1 ? ({ kind: "answer", status: 422 } as const) : acknowledged();
    provider.onAcknowledge((_post, count) => (isLast(count) ? end : { kind: "answer", status: 503 }));
    expect(await admin("POST", `/acknowledgments/${id}/replay`)).toMatchObject({ state: "queued" });
    await becomes(id, replay === 1 ? "dead" : "delivered");
    expect(provider.acknowledgmentsOf(id)).toHaveLength(before + 4);
  }
});

test("a replayed letter without its text dies with the reason payload_lost", async () => {
  await startStack();
  provider.onAcknowledge(() => ({ kind: "answer", status: 422 }));
  const [id = ""] = await deadLetters(1);
  const direct = new Redis(redis.url);
  const jobs = await direct.keys("{adrelay:0}:acknowledgments:a*");
  const hashes = await Promise.all(jobs.map((key) => direct.type(key)));
  await direct.del(...jobs.filter((_key, at) => hashes[at] === "hash"));
  direct.disconnect();
  expect(await admin("POST", `/acknowledgments/${id}/replay`)).toMatchObject({ state: "queued" });
  await eventually(async () => {
    const view = await admin("GET", `/acknowledgments/${id}`);
    expect(view).toMatchObject({ state: "dead", reason: "payload_lost", reason_text: expect.any(String) });
  });
  expect(await countIn("queued")).toBe(0);
});

test("a dead letter past its retention expires, is counted, and loses its text", async () => {
  await startStack({ DEAD_LETTER_RETENTION: "500ms" });
  provider.onAcknowledge(() => ({ kind: "answer", status: 422 }));
  const id = await acknowledge();
  await becomes(id, "expired");
  await eventually(async () => {
    const samples = await fetchMetrics(stack.gatewayOpsUrl);
    expect(sumOf(samples, "adrelay_acknowledgments_expired_total")).toBe(1);
    expect(sumOf(samples, "adrelay_queue_jobs", { state: "failed" })).toBe(0);
  });
  expect((await admin("GET", "/acknowledgments"))["acknowledgments"]).toEqual([]);
  expect(await admin("POST", `/acknowledgments/${id}/replay`)).toMatchObject({ code: "not_dead" });
});

test("concurrent replays and discards end each letter in one state, once", async () => {
  await startStack();
  provider.onAcknowledge((_post, count) => (count === 0 ? { kind: "answer", status: 422 } : acknowledged()));
  const ids = await deadLetters(40);
  const bulk = admin("POST", "/replays", { rate_per_second: 1000 });
  const requests = ids.flatMap((id) => [
    admin("POST", `/acknowledgments/${id}/replay`),
    admin("POST", `/acknowledgments/${id}/discard`, { reason: "stale" }),
    admin("POST", `/acknowledgments/${id}/replay`),
  ]);
  const answers = await Promise.all(requests);
  await bulk;
  await eventually(async () => {
    expect([await countIn("queued"), await countIn("dead")]).toEqual([0, 0]);
    expect((await countIn("delivered")) + (await countIn("discarded"))).toBe(ids.length);
  }, 20_000);
  const discarded = answers.filter(({ state }) => state === "discarded").length;
  expect(await countIn("discarded")).toBe(discarded);
  for (const id of ids) {
    const { state } = (await caller.lookUp(id)).body;
    expect(provider.acknowledgmentsOf(id)).toHaveLength(state === "delivered" ? 2 : 1);
  }
});

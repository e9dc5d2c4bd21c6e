/**
 * Guards against acknowledgments that wait for the lock of a worker that was killed, and against a second post of what a
 * worker holds that only stands still. The provider hangs at the first post of each acknowledgment.
 */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  acknowledged,
  eventually,
  pause,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

const COUNT = 8;
/** Far less than the locks live, also on a loaded machine. */
const POSTED_AGAIN_WITHIN_MS = 8000;
/** The default. BullMQ's locks live for ten seconds more. */
const DELIVERY_TIMEOUT_MS = "10000";
const STANDSTILL_MS = 5000;

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;
let workers: AppProcess[];

beforeEach(async () => {
  workers = [];
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  provider.onAcknowledge((_post, count) => (count === 0 ? { kind: "hang" } : acknowledged()));
});
afterEach(async () => {
  await Promise.all(workers.map((worker) => worker.kill("SIGKILL")));
  await stack.stop();
  await provider.close();
  await redis.dispose();
});

async function startStack(more: Readonly<Record<string, string>> = {}): Promise<AppProcess> {
  const env = { DELIVERY_TIMEOUT_MS, ...more };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl);
  const worker = stack.apps.get("worker") ?? (await stack.start("worker"));
  workers.push(worker);
  return worker;
}

async function startAnother(): Promise<AppProcess> {
  const worker = await stack.start("worker", { WORKER_OPS_PORT: "0" });
  workers.push(worker);
  return worker;
}

/** Acknowledgments whose first posts hang. */
async function hold(): Promise<string[]> {
  const ids: string[] = [];
  for (let at = 0; at < COUNT; at += 1) {
    const id = await caller.injectUntilFilled();
    await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
    ids.push(id);
  }
  await eventually(() => expect(postsOf(ids)).toEqual(ids.map(() => 1)));
  return ids;
}

const postsOf = (ids: readonly string[]) => ids.map((id) => provider.acknowledgmentsOf(id).length);

/** Waits for the second posts, and returns the time of the last one. */
async function secondPosts(ids: readonly string[]): Promise<number> {
  await eventually(() => expect(postsOf(ids)).toEqual(ids.map(() => 2)));
  return Math.max(...ids.map((id) => provider.acknowledgmentsOf(id)[1]?.atMs ?? 0));
}

async function expectDelivered(ids: readonly string[]): Promise<void> {
  await eventually(async () => {
    const found = await Promise.all(ids.map((id) => caller.lookUp(id)));
    expect(found.map(({ body }) => body["state"])).toEqual(ids.map(() => "delivered"));
  });
}

/** With the same idempotency key (invariant 4). */
function expectSameKeys(ids: readonly string[]): void {
  for (const id of ids) {
    const keys = provider.acknowledgmentsOf(id).map(({ headers }) => headers["idempotency-key"]);
    expect(new Set(keys).size).toBe(1);
  }
}

async function kill(worker: AppProcess): Promise<void> {
  worker.kill("SIGKILL");
  await worker.exited;
}

test("what a killed worker held is posted again within seconds by another one", async () => {
  const victim = await startStack();
  const ids = await hold();
  const peer = await startAnother();
  const killedAtMs = performance.now();
  await kill(victim);
  expect((await secondPosts(ids)) - killedAtMs).toBeLessThan(POSTED_AGAIN_WITHIN_MS);
  await expectDelivered(ids);
  expectSameKeys(ids);
  expect(peer.logs.filter(({ event }) => event === "process_gone")).toMatchObject([
    { role: "worker", pid: victim.pid, jobs: COUNT },
  ]);
});

test("a worker that is restarted at once posts what it held again within seconds", async () => {
  const victim = await startStack();
  const ids = await hold();
  const killedAtMs = performance.now();
  await kill(victim);
  await startAnother();
  expect((await secondPosts(ids)) - killedAtMs).toBeLessThan(POSTED_AGAIN_WITHIN_MS);
  await expectDelivered(ids);
});

test("what a worker still holds at the end of its stop is posted again within seconds by another one", async () => {
  const victim = await startStack({ SHUTDOWN_TIMEOUT_MS: "500" });
  const ids = await hold();
  const peer = await startAnother();
  expect(await victim.stop()).toBe(0);
  const endedAtMs = performance.now();
  expect((await secondPosts(ids)) - endedAtMs).toBeLessThan(POSTED_AGAIN_WITHIN_MS);
  await expectDelivered(ids);
  expectSameKeys(ids);
  expect(peer.logs.filter(({ event }) => event === "process_gone")).toMatchObject([{ pid: victim.pid }]);
});

test("what two workers held that are killed together is posted by a third", async () => {
  const first = await startStack();
  const ids = await hold();
  const second = await startAnother();
  const more = await hold();
  await Promise.all([kill(first), kill(second)]);
  const killedAtMs = performance.now();
  await startAnother();
  const all = [...ids, ...more];
  expect((await secondPosts(all)) - killedAtMs).toBeLessThan(POSTED_AGAIN_WITHIN_MS);
  await expectDelivered(all);
});

test("a worker killed while Redis is away is found gone soon after its return, and no other one is", async () => {
  const victim = await startStack();
  const ids = await hold();
  const peer = await startAnother();
  await redis.crash();
  await kill(victim);
  // Longer than the silence after which a process may be gone.
  await pause(4000);
  await redis.restart();
  const backAtMs = performance.now();
  expect((await secondPosts(ids)) - backAtMs).toBeLessThan(POSTED_AGAIN_WITHIN_MS + 1000);
  await expectDelivered(ids);
  expect(peer.logs.filter(({ event }) => event === "process_gone")).toMatchObject([{ pid: victim.pid }]);
});

test("a worker that stands still keeps its jobs as long as their locks", async () => {
  const victim = await startStack();
  const released = Promise.withResolvers<void>();
  provider.onAcknowledge(() => ({ kind: "held", until: released.promise, answer: acknowledged() }));
  const ids = await hold();
  const peer = await startAnother();
  victim.kill("SIGSTOP");
  await pause(STANDSTILL_MS);
  expect(postsOf(ids)).toEqual(ids.map(() => 1));
  victim.kill("SIGCONT");
  released.resolve();
  await expectDelivered(ids);
  expect(postsOf(ids)).toEqual(ids.map(() => 1));
  expect(peer.logs.filter(({ event }) => event === "process_gone")).toEqual([]);
});

/**
 * A stop is bounded (bullmq#4656): a process that gets SIGTERM ends with 0 within SHUTDOWN_TIMEOUT_MS, in every state
 * of Redis, provider and traffic. Each test brings a new stack into one state and stops both apps.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { statsSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  eventually,
  filled,
  pause,
  type RelayCaller,
  relayCaller,
  type ScriptedProvider,
  type SocketProxy,
  startApp,
  startRelayStack,
  startScriptedProvider,
  startSocketProxy,
  TEST_ADMIN_TOKEN,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { describe, expect, test } from "vitest";

const ASYNC = { headers: { Prefer: "respond-async" } };
const SHUTDOWN_TIMEOUT_MS = 4000;
/** How much longer a stop may take on a busy machine: for timers, the last log lines and the end of the process. */
const GRACE_MS = 1500;

/** What a state can change. */
interface Surroundings {
  readonly opsUrl: string;
  readonly redis: TestRedis;
  readonly admin: Redis;
  readonly toRedis: SocketProxy;
  readonly provider: ScriptedProvider;
  readonly caller: RelayCaller;
}

/** A state in which both apps are stopped, and how it is made while they run. */
interface State {
  readonly name: string;
  make(surroundings: Surroundings): Promise<void> | void;
}

const command =
  (line: string) =>
  async ({ admin }: Surroundings) => {
    const [name = "", ...args] = line.split(" ");
    await admin.call(name, ...args);
  };

/** Begins ten acknowledgments that wait as long as a caller may, so that they are open when the stop comes. */
async function beginAcknowledgments({ caller }: Surroundings): Promise<void> {
  for (let at = 0; at < 10; at += 1) {
    const id = await caller.injectUntilFilled();
    // The stop answers or cuts them. The answers are not checked here.
    caller.acknowledge(id, "text", { headers: { Prefer: "wait=30" } }).catch(() => undefined);
  }
}

const posted = ({ provider }: Surroundings) =>
  eventually(() =>
    expect(provider.posts.filter(({ operation }) => operation === "acknowledge")).not.toEqual([]),
  );

/** To test one more state, add it here. */
const STATES: readonly State[] = [
  { name: "idle", make: () => {} },
  { name: "under load", make: underLoad },
  { name: "Redis stopped", make: ({ redis }) => redis.stop() },
  { name: "Redis frozen", make: ({ redis }) => redis.freeze() },
  { name: "Redis frozen with attempts under way", make: inAttempts(({ redis }) => redis.freeze()) },
  { name: "Redis READONLY", make: command("REPLICAOF 127.0.0.1 1") },
  { name: "Redis READONLY with attempts under way", make: inAttempts(command("REPLICAOF 127.0.0.1 1")) },
  { name: "Redis out of memory", make: command("CONFIG SET maxmemory 1") },
  {
    name: "Redis at maxclients",
    make: async (surroundings) => {
      await command("CONFIG SET maxclients 1")(surroundings);
      await command("CLIENT KILL TYPE normal SKIPME yes")(surroundings);
      await command("CLIENT KILL TYPE pubsub")(surroundings);
    },
  },
  { name: "Redis with a new password and attempts under way", make: inAttempts(changePassword) },
  { name: "connections to Redis silent", make: ({ toRedis }) => toRedis.swallow() },
  { name: "replies of Redis slow", make: ({ toRedis }) => toRedis.setReplyDelay(2000) },
  { name: "provider hanging", make: providerThat("hang") },
  { name: "provider dripping", make: providerThat("drip") },
  {
    name: "provider down",
    make: async (surroundings) => {
      await beginAcknowledgments(surroundings);
      await surroundings.provider.close();
    },
  },
  {
    name: "jobs delayed",
    make: async (surroundings) => {
      surroundings.provider.onAcknowledge(() => ({
        kind: "answer",
        status: 503,
        headers: { "retry-after": "60" },
      }));
      await beginAcknowledgments(surroundings);
      await posted(surroundings);
    },
  },
  { name: "a circuit open", make: circuitOpen },
  {
    name: "a circuit open and Redis frozen",
    make: async (surroundings) => {
      await circuitOpen(surroundings);
      await surroundings.redis.freeze();
    },
  },
  { name: "a bulk replay running", make: replayRunning },
];

async function circuitOpen(surroundings: Surroundings): Promise<void> {
  surroundings.provider.onAcknowledge(() => ({ kind: "answer", status: 401 }));
  await beginAcknowledgments(surroundings);
  await eventually(async () => {
    const { providers } = statsSchema.parse(await askAdmin(surroundings, "GET", "/stats"));
    expect(providers).toMatchObject([{ circuit: "open", reason: "auth" }]);
  });
}

/** At one letter per second it still runs when the stop comes. */
async function replayRunning(surroundings: Surroundings): Promise<void> {
  surroundings.provider.onAcknowledge(() => ({ kind: "answer", status: 404 }));
  const { caller } = surroundings;
  const asks = Array.from({ length: 10 }, () => caller.acknowledgeUntilAccepted(unknownId(), "text", ASYNC));
  await Promise.all(asks);
  await eventually(async () => {
    const { states } = statsSchema.parse(await askAdmin(surroundings, "GET", "/stats"));
    expect(states.dead).toBe(10);
  });
  const started = await askAdmin(surroundings, "POST", "/replays", { rate_per_second: 1 });
  expect(started).toMatchObject({ state: "running", matched: 10 });
}

async function askAdmin(
  { opsUrl }: Surroundings,
  method: string,
  path: string,
  body?: unknown,
): Promise<unknown> {
  const response = await fetch(`${opsUrl}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return response.json();
}

function providerThat(kind: "hang" | "drip") {
  return async (surroundings: Surroundings) => {
    surroundings.provider.onAcknowledge(() => ({ kind }));
    await beginAcknowledgments(surroundings);
    surroundings.provider.onStart(() => ({ kind }));
    // An injection that gets no answer either.
    surroundings.caller.inject({ headers: { "X-Adrelay-Timeout-Ms": "30000" } }).catch(() => undefined);
    await posted(surroundings);
  };
}

/** Callers go on until the listener is closed and their calls fail. */
async function underLoad(surroundings: Surroundings): Promise<void> {
  const { caller, provider } = surroundings;
  provider.onStart(() => ({ kind: "late", delayMs: 50, answer: filled() }));
  const lane = async () => {
    for (;;) {
      const { body } = await caller.inject();
      await caller.acknowledge(body["ad_response_id"], "text");
    }
  };
  for (let at = 0; at < 8; at += 1) {
    lane().catch(() => undefined);
  }
  await posted(surroundings);
}

/** Makes a state while attempts are under way, so that their outcomes can't be booked. */
function inAttempts(make: State["make"]): State["make"] {
  return async (surroundings) => {
    surroundings.provider.onAcknowledge(() => ({
      kind: "late",
      delayMs: 500,
      answer: { kind: "answer", status: 503 },
    }));
    await beginAcknowledgments(surroundings);
    await posted(surroundings);
    await make(surroundings);
    await pause(700);
  };
}

async function changePassword(surroundings: Surroundings): Promise<void> {
  await command("CONFIG SET requirepass another")(surroundings);
  await command("CLIENT KILL TYPE normal SKIPME yes")(surroundings);
}

/** Sends SIGTERM to each. Resolves to the exit codes and to the time of the slowest. */
async function stopAll(apps: readonly AppProcess[]) {
  const startedAtMs = performance.now();
  const exits = await Promise.all(apps.map((app) => app.stop()));
  return { exits, tookMs: performance.now() - startedAtMs };
}

describe.concurrent("a stopped process ends with 0 in time", () => {
  test.each(STATES)("with $name", async ({ make }) => {
    const redis = await startTestRedis();
    const [toRedis, provider] = await Promise.all([startSocketProxy(redis.port), startScriptedProvider()]);
    const admin = new Redis(redis.url);
    admin.on("error", () => {});
    const stack = await startRelayStack({
      redis: { url: `redis://127.0.0.1:${toRedis.port}` },
      providerUrl: provider.url,
      env: { SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS), DELIVERY_TIMEOUT_MS: "20000" },
    });
    await make({
      redis,
      admin,
      toRedis,
      provider,
      caller: relayCaller(stack.gatewayUrl),
      opsUrl: stack.gatewayOpsUrl,
    });
    const apps = [...stack.apps.values()];
    const { exits, tookMs } = await stopAll(apps);
    expect(exits).toEqual([0, 0]);
    expect(tookMs).toBeLessThan(SHUTDOWN_TIMEOUT_MS + GRACE_MS);
    const bugs = apps.flatMap(({ logs }) => logs).filter(({ event }) => BUG_EVENTS.has(String(event)));
    expect(bugs).toEqual([]);
    admin.disconnect();
    await Promise.all([toRedis.close(), provider.close()]);
    await redis.dispose();
  });

  test.each(["gateway", "worker"] as const)("with a Redis that never ran, the %s", async (name) => {
    const env = {
      REDIS_URL: "redis://127.0.0.1:9",
      API_KEYS: TEST_API_KEY,
      PROVIDER_API_KEY: TEST_PROVIDER_KEY,
      SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS),
    };
    const ports = { GATEWAY_PORT: "0", GATEWAY_OPS_PORT: "0", WORKER_OPS_PORT: "0" };
    const app = await startApp(name, { ...env, ...ports });
    const { exits, tookMs } = await stopAll([app]);
    expect(exits).toEqual([0]);
    expect(tookMs).toBeLessThan(SHUTDOWN_TIMEOUT_MS + GRACE_MS);
  });
});

test("an app whose parent ends before it is ready ends with 0", async () => {
  const redis = await startTestRedis();
  const main = fileURLToPath(new URL("../apps/worker/src/main.ts", import.meta.url));
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env["PATH"], REDIS_URL: redis.url, PROVIDER_API_KEY: "k", WORKER_OPS_PORT: "0" },
    stdio: ["ignore", "ignore", "pipe", "ipc"],
  });
  const exited = once(child, "exit");
  child.disconnect();
  expect(await exited).toEqual([0, null]);
  await redis.dispose();
});

const BUG_EVENTS = new Set([
  "uncaught_exception",
  "unhandled_rejection",
  "request_failed",
  "background_work_failed",
]);

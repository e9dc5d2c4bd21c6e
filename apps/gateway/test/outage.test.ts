/** The gateway as a process in an outage of Redis: what becomes of untracked ads after it, and what the log says of it. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  eventually,
  filled,
  relayCaller,
  type ScriptedProvider,
  type SocketProxy,
  startApp,
  startScriptedProvider,
  startSocketProxy,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, onTestFinished, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
/** Between the gateway and Redis. */
let way: SocketProxy;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  provider.onStart(() => filled());
  way = await startSocketProxy(redis.port);
});
afterAll(async () => {
  await way.close();
  await Promise.all([provider.close(), redis.dispose()]);
});

async function startGateway(env: Readonly<Record<string, string>> = {}) {
  way.setTarget(redis.port);
  const app = await startApp("gateway", {
    REDIS_URL: redis.url.replace(String(redis.port), String(way.port)),
    PROVIDER_URL: provider.url,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    API_KEYS: TEST_API_KEY,
    GATEWAY_PORT: "0",
    GATEWAY_OPS_PORT: "0",
    INJECTION_TIMEOUT_MS: "10000",
    SHUTDOWN_TIMEOUT_MS: "5000",
    ...env,
  });
  onTestFinished(async () => void (await app.stop()));
  return { app, caller: relayCaller(`http://127.0.0.1:${app.listening["port"]}`) };
}

function cut(): void {
  way.setTarget(1);
  way.cut();
}

/** The log lines that have these fields. */
const linesOf = ({ logs }: AppProcess, fields: Readonly<Record<string, unknown>>) =>
  logs.filter((line) => Object.entries(fields).every(([name, value]) => line[name] === value));

test.each([
  { unknownAck: "reject", answer: [404, "unknown_ad_response"] },
  { unknownAck: "accept", answer: [201, undefined] },
])("with UNKNOWN_ACK=$unknownAck an untracked ad gets $answer after the outage", async (given) => {
  const { app, caller } = await startGateway({ UNKNOWN_ACK: given.unknownAck });
  cut();
  const id = await caller.injectUntilFilled();
  const untracked = { event: "request", untracked: true, ad_response_id: id };
  await eventually(() => expect(linesOf(app, untracked)).toHaveLength(1));
  const during = await caller.acknowledge(id, "text");
  expect([during.status, during.body["code"]]).toEqual([503, "queue_unavailable"]);
  way.setTarget(redis.port);
  const after = await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  expect([after.status, after.body["code"]]).toEqual(given.answer);
});

test("a gateway that stops at once has logged how many ads were untracked and how many acknowledgments refused", async () => {
  const { app, caller } = await startGateway();
  cut();
  await eventually(async () => expect((await caller.acknowledge(unknownId(), "text")).status).toBe(503));
  const calls = Array.from({ length: 20 }, async () => {
    await caller.inject();
    await caller.acknowledge(unknownId(), "text");
  });
  await Promise.all(calls);
  app.kill("SIGTERM");
  expect(await app.exited).toBe(0);
  const reported = (event: string) =>
    linesOf(app, { event }).reduce((sum, { count }) => sum + Number(count), 0);
  const untracked = linesOf(app, { event: "request", untracked: true });
  const refused = linesOf(app, { event: "request", operation: "acknowledge", status: 503 });
  expect(untracked.length).toBeGreaterThan(1);
  expect(refused.length).toBeGreaterThan(1);
  expect(reported("injection_untracked")).toBe(untracked.length);
  expect(reported("intake_failed")).toBe(refused.length);
});

/**
 * Erasures with real processes. They guard against a user's text that stays in Redis after it was to be erased: in its memory
 * at once, and on its disk after a rewrite. The text is erased while it is queued, being delivered, dead and delivered.
 */
import { readdirSync, readFileSync, statSync } from "node:fs";
import { join } from "node:path";
import { acknowledgmentDetailSchema, auditPageSchema, erasureSchema, statsSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type Behaviour,
  dumpRedis,
  eventually,
  filled,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdrelay,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  TEST_INJECTION,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

/** The test reads Redis' files. */
const ON_THIS_MACHINE = { ...process.env, ADRELAY_TEST_REDIS: "local" };
const TEXT = "canary of a user who has diabetes";
const SESSION = "canary-session-4711";
const [KEY, OLD_KEY] = ["k".repeat(32), "o".repeat(32)];
const ASYNC = { headers: { Prefer: "respond-async" } };

let redis: TestRedis;
let connection: Redis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis([], ON_THIS_MACHINE), startScriptedProvider()]);
  connection = new Redis(redis.url);
  const env = { SESSION_HASH_KEYS: KEY, DELIVERY_TIMEOUT_MS: "5000", RETRY_SCHEDULE: "1h" };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl);
  provider.onStart(() => filled());
});
afterAll(async () => {
  connection.disconnect();
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});

async function accepted(behaviour: Behaviour, session = SESSION): Promise<string> {
  provider.onAcknowledge(() => behaviour);
  const body = { ...TEST_INJECTION, request_context: { session_id: session } };
  const id = await caller.injectUntilFilled({}, body);
  await caller.acknowledgeUntilAccepted(id, TEXT, ASYNC);
  await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
  return id;
}

const states = {
  queued: () => accepted({ kind: "answer", status: 503 }),
  dead: () => accepted({ kind: "answer", status: 422 }),
  delivered: () => accepted(acknowledged()),
} as const;

async function admin(path: string, body?: object) {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  return { status: response.status, json: (await response.json()) as unknown };
}

async function stateOf(id: string): Promise<string> {
  return acknowledgmentDetailSchema.parse((await admin(`/acknowledgments/${id}`)).json).state;
}

const becomes = (id: string, state: string) =>
  eventually(async () => expect(await stateOf(id)).toBe(state), 10_000);

const adrelay = (...words: string[]) =>
  startAdrelay(words, { env: { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN } })
    .ended;
const eraseSession = (...words: string[]) =>
  adrelay("erase", "--session", SESSION, "--why", "the user asked", "--yes", ...words);

async function expectNotInRedis(): Promise<void> {
  const kept = await dumpRedis(redis.url);
  expect(kept).not.toContain("diabetes");
  expect(kept).not.toContain(SESSION);
}

/** Files of Redis that contain a text. */
async function filesWith(text: string): Promise<string[]> {
  const [dir = ""] = /\/[^"]+/.exec(JSON.stringify(await connection.config("GET", "dir"))) ?? [];
  const names = readdirSync(dir, { recursive: true, encoding: "utf8" });
  const files = names.map((name) => join(dir, name)).filter((file) => statSync(file).isFile());
  return files.filter((file) => readFileSync(file).includes(text));
}

async function jobsInRedis(): Promise<string[]> {
  return (await connection.keys("*:acknowledgments:a*")).filter((key) => /:a[\w-]{27}$/.test(key));
}

/** The worker lets go of a job a moment after its outcome was booked. */
const noAttemptRuns = () =>
  eventually(async () => expect(await connection.keys("*:acknowledgments:a*:lock")).toEqual([]), 10_000);

async function expectBalance(): Promise<void> {
  const { states: counts } = statsSchema.parse((await admin("/stats")).json);
  const sum = Object.values(counts).reduce((total, value) => total + value, 0);
  const metrics = await (await fetch(`${stack.gatewayOpsUrl}/metrics`)).text();
  const recorded = /^adrelay_injections_recorded_total\{.*outcome="ok".*\} (\d+)$/m.exec(metrics)?.[1];
  expect(sum).toBe(Number(recorded));
}

test.each(["queued", "dead", "delivered"] as const)(
  "the text of a %s acknowledgment leaves Redis at once",
  async (state) => {
    const id = await states[state]();
    await becomes(id, state);
    await noAttemptRuns();
    const after = state === "delivered" ? "delivered" : "discarded";
    const { json } = await admin("/erasures", { ad_response_id: id, reason: "the user asked" });
    expect(json).toEqual({ erased: 1, without_text: 0, under_way: 0, state: after, next_cursor: null });
    await expectNotInRedis();
    expect(await stateOf(id)).toBe(after);
    // A repeat of a caller that doesn't know of the erasure brings no text back.
    expect((await caller.acknowledgeUntilAccepted(id, TEXT)).status).toBe(state === "delivered" ? 200 : 406);
    await expectNotInRedis();
    const [audited] = auditPageSchema.parse((await admin("/audit?limit=1")).json).entries;
    expect(audited).toMatchObject({
      by: "admin",
      action: "erase",
      ad_response_id: id,
      details: { reason: "the user asked", from: state },
    });
    await expectBalance();
  },
);

test.each([
  ["fails", 503, "discarded"],
  ["is taken", 200, "delivered"],
] as const)("an erasure during an attempt that then %s leaves no text", async (_what, status, state) => {
  const answer: Behaviour = status === 200 ? acknowledged() : { kind: "answer", status };
  const erased = Promise.withResolvers<void>();
  const id = await accepted({ kind: "held", until: erased.promise, answer });
  const { json } = await admin("/erasures", { ad_response_id: id, reason: "the user asked" });
  expect(erasureSchema.parse(json)).toMatchObject({ erased: 1, under_way: 1, state: "discarded" });
  await expectNotInRedis();
  erased.resolve();
  await eventually(async () => expect(await jobsInRedis()).toEqual([]), 10_000);
  await becomes(id, state);
  await expectNotInRedis();
  expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
  await expectBalance();
});

test("a session is erased in all states, also if an older key hashed it, and no other session", async () => {
  const ids = [await states.queued(), await states.dead(), await states.delivered()];
  await stack.crash("gateway");
  await stack.start("gateway", { SESSION_HASH_KEYS: `${OLD_KEY},${KEY}` });
  ids.push(await states.queued());
  const other = await accepted({ kind: "answer", status: 503 }, "another session");
  const ended = await eraseSession();
  expect(ended).toMatchObject({ exit: 0, stdout: "4 erased, 0 without a text, 0 under way\n" });
  expect(await Promise.all(ids.map(stateOf))).toEqual(["discarded", "discarded", "delivered", "discarded"]);
  expect(await stateOf(other)).toBe("queued");
  expect(await dumpRedis(redis.url)).not.toContain(SESSION);
  const single = await adrelay("erase", other, unknownId(), "--why", "the test ends", "--yes");
  expect(single).toMatchObject({ exit: 1, stdout: `${other}  erased, discarded\n` });
  expect(single.stderr).toContain("There is no ad response with this id");
  await expectNotInRedis();
});

test("after a rewrite no file of Redis contains an erased text, and only its owner reads them", async () => {
  const id = await states.queued();
  const before = await filesWith("diabetes");
  expect(before.length).toBeGreaterThan(0);
  expect(before.filter((file) => (statSync(file).mode & 0o077) !== 0)).toEqual([]);
  await admin("/erasures", { ad_response_id: id, reason: "the user asked", rewrite: true });
  await eventually(async () => expect(await filesWith("diabetes")).toEqual([]), 15_000);
  await eventually(async () => {
    const metrics = await (await fetch(`${stack.workerOpsUrl}/metrics`)).text();
    const at = /^adrelay_redis_last_rewrite_timestamp_seconds (.+)$/m.exec(metrics)?.[1];
    expect(Math.abs(Number(at) - Date.now() / 1000)).toBeLessThan(60);
  });
});

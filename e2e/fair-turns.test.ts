/** Guards against one publisher's backlog that delays the acknowledgments of another, with real processes. */
import { createHash } from "node:crypto";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  type AdResponseId,
  adAckIdSchema,
  adResponseIdSchema,
  type DeliveryJob,
  publisherIdSchema,
} from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { openStore } from "@adrelay/store";
import {
  acknowledged,
  eventually,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";

const BACKLOG = 6000;
const PROMISED_MS = 1000;

let server: TestRedis;
let redis: Redis;
let folder: string;
let providers: { busy: ScriptedProvider; calm: ScriptedProvider };
let stack: RelayStack;
let calm: RelayCaller;

beforeEach(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url);
  providers = { busy: await startScriptedProvider(), calm: await startScriptedProvider() };
  folder = mkdtempSync(join(tmpdir(), "adrelay-fair-turns-"));
  const file = join(folder, "publishers.yaml");
  // JSON is YAML.
  writeFileSync(file, JSON.stringify({ publishers: [publisherOf("busy"), publisherOf("calm")] }));
  stack = await startRelayStack({
    redis: server,
    providerUrl: "http://127.0.0.1:9",
    env: {
      API_KEYS: "",
      PUBLISHERS_FILE: file,
      PROVIDER_KEY: "key",
      DELIVERY_TIMEOUT_MS: "10000",
      SHUTDOWN_TIMEOUT_MS: "2000",
    },
  });
  calm = relayCaller(stack.gatewayUrl, "caller-calm");
});
afterEach(async () => {
  await stack.stop();
  await Promise.all([providers.busy.close(), providers.calm.close()]);
  redis.disconnect();
  await server.dispose();
  rmSync(folder, { recursive: true });
});

function publisherOf(id: "busy" | "calm", { url } = providers[id]) {
  return {
    id,
    name: id,
    key_sha256: [createHash("sha256").update(`caller-${id}`).digest("hex")],
    provider: { url, api_key_env: "PROVIDER_KEY" },
  };
}

/** Accepts many acknowledgments of the busy publisher, as a gateway does. */
async function acceptBacklog(): Promise<void> {
  const store = openStore({ redis, recordRetentionMs: 60_000 });
  const ids = Array.from({ length: BACKLOG }, () => adResponseIdSchema.parse(unknownId()));
  await Promise.all(ids.map((id) => store.acknowledgments.accept({ job: busyJob(id), textHash: "hash" })));
  await store.stop();
}

function busyJob(adResponseId: AdResponseId): DeliveryJob {
  const publisher = publisherIdSchema.parse("busy");
  const adAckId = adAckIdSchema.parse(unknownId());
  const body = JSON.stringify({ ad_response_id: adResponseId });
  return { v: 1, adResponseId, adAckId, publisher, body, requestId: "r" };
}

/** Acknowledges, waits for the outcome, and returns how long that took. */
async function deliverCalm(): Promise<number> {
  const answer = await calm.acknowledgeUntilAccepted(unknownId(), "a text", {
    headers: { Prefer: "wait=20" },
  });
  expect(answer.status).toBe(200);
  return answer.durationMs;
}

/** On a loaded machine a few of twenty may take longer. */
async function expectPromptCalm(): Promise<void> {
  const durationsMs: number[] = [];
  while (durationsMs.length < 20) {
    durationsMs.push(await deliverCalm());
  }
  expect(durationsMs.toSorted((one, other) => one - other).at(-4)).toBeLessThan(PROMISED_MS);
}

test("a burst of one publisher delays another by less than a second, also if its provider hangs", async () => {
  providers.busy.onAcknowledge(() => ({ kind: "hang" }));
  await acceptBacklog();
  await eventually(() => expect(providers.busy.posts.length).toBeGreaterThan(0));
  await expectPromptCalm();
});

test("a backlog that grew without a worker comes after another publisher's acknowledgment", async () => {
  await stack.apps.get("worker")?.stop();
  await acceptBacklog();
  const id = unknownId();
  const accepted = await calm.acknowledgeUntilAccepted(id, "a text", {
    headers: { Prefer: "respond-async" },
  });
  expect(accepted.status).toBe(201);
  await stack.start("worker");
  const [post] = await eventually(() => {
    const posts = providers.calm.acknowledgmentsOf(id);
    expect(posts).toHaveLength(1);
    return posts;
  });
  const before = providers.busy.posts.filter(({ atMs }) => atMs < (post?.atMs ?? 0));
  expect(before.length).toBeLessThan(BACKLOG / 10);
});

test("publishers of one account leave each other slots, also if all calls of one hang", async () => {
  const shared = join(folder, "shared.yaml");
  const both = [publisherOf("busy"), publisherOf("calm", providers.busy)];
  writeFileSync(shared, JSON.stringify({ publishers: both }));
  await stack.apps.get("worker")?.stop();
  await stack.start("worker", { PUBLISHERS_FILE: shared });
  // The backlog's bodies have no text.
  providers.busy.onAcknowledge(({ fields }) =>
    "llm_response" in fields ? acknowledged() : { kind: "hang" },
  );
  await acceptBacklog();
  await eventually(() => expect(providers.busy.posts.length).toBeGreaterThan(20));
  await expectPromptCalm();
});

test("a bulk replay of one publisher delays another by less than a second", async () => {
  providers.busy.onAcknowledge(() => ({ kind: "answer", status: 400, body: { error: "unreadable" } }));
  await acceptBacklog();
  const dead = async () => Number(await redis.zcard("{adrelay:0}:dead"));
  await eventually(async () => expect(await dead()).toBe(BACKLOG), 60_000);
  providers.busy.onAcknowledge(() => ({ kind: "hang" }));
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1/replays`, {
    method: "POST",
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}`, "Content-Type": "application/json" },
    body: JSON.stringify({ publisher: "busy", rate_per_second: 10_000 }),
  });
  expect(response.status, await response.text()).toBe(202);
  await eventually(async () => expect(await dead()).toBeLessThan(BACKLOG));
  await expectPromptCalm();
});

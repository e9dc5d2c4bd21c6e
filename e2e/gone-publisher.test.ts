/**
 * From API_KEYS to PUBLISHERS_FILE: the publisher `default` is gone, and what it had is left. Guards against attempts that
 * nobody made, and against acknowledgments that wait for ever and that no operator can find or mend.
 */
import { acknowledgmentDetailSchema, doctorReportSchema, statsSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  callerKeyOf,
  eventually,
  fetchLedgerMetrics,
  fetchMetrics,
  filled,
  type PublishersFile,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdrelay,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_ADMIN_TOKEN,
  writePublishersFile,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { z } from "zod";

const ASYNC = { headers: { Prefer: "respond-async" } };
const PATIENT = { headers: { Prefer: "wait=10" } };

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let file: PublishersFile;

beforeEach(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  file = writePublishersFile([{ id: "acme", providerUrl: provider.url, keyEnv: "PROVIDER_API_KEY" }]);
  provider.onStart(() => filled());
  provider.onAcknowledge(() => acknowledged());
  stack = await startRelayStack({ redis, providerUrl: provider.url });
});
afterEach(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
  file.remove();
});

const byDefault = () => relayCaller(stack.gatewayUrl);
const byAcme = () => relayCaller(stack.gatewayUrl, callerKeyOf("acme"));

async function ask<T>(path: string, schema: z.ZodType<T>): Promise<T> {
  const headers = { Authorization: `Bearer ${TEST_ADMIN_TOKEN}` };
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, { headers });
  return schema.parse(await response.json());
}
const show = (id: string) => ask(`/acknowledgments/${id}`, acknowledgmentDetailSchema);
const adrelay = (...words: string[]) =>
  startAdrelay(words, { env: { ADRELAY_URL: stack.gatewayOpsUrl, ADRELAY_ADMIN_TOKEN: TEST_ADMIN_TOKEN } })
    .ended;

/** Restarts both with other publishers. What is queued meanwhile stays queued. */
async function restartWith(env: Record<string, string>): Promise<void> {
  await Promise.all([...stack.apps.values()].map((app) => app.stop()));
  await Promise.all([stack.start("gateway", env), stack.start("worker", env)]);
}
const useFile = () => restartWith({ API_KEYS: "", PUBLISHERS_FILE: file.path });
const useKeys = () => restartWith({});

const parked = () =>
  eventually(async () =>
    expect((await ask("/stats", statsSchema)).queue).toMatchObject({ waiting: 0, active: 0 }),
  );

/** Of `default`: one awaiting, one dead, one queued without and one after an attempt. */
async function leaveSome() {
  const awaiting = await byDefault().injectUntilFilled();
  provider.onAcknowledge(() => ({ kind: "answer", status: 422 }));
  const dead = await byDefault().injectUntilFilled();
  await byDefault().acknowledgeUntilAccepted(dead, "text", ASYNC);
  await eventually(async () => expect((await show(dead)).state).toBe("dead"));
  provider.onAcknowledge(() => ({ kind: "answer", status: 429, headers: { "Retry-After": "1" } }));
  const attempted = await byDefault().injectUntilFilled();
  await byDefault().acknowledgeUntilAccepted(attempted, "text", ASYNC);
  await eventually(async () => expect((await show(attempted)).attempts).toBeGreaterThan(0));
  await stack.apps.get("worker")?.stop();
  const fresh = await byDefault().injectUntilFilled();
  await byDefault().acknowledgeUntilAccepted(fresh, "text", ASYNC);
  provider.onAcknowledge(() => acknowledged());
  return { awaiting, dead, attempted, fresh };
}

test("acknowledgments of a publisher that is gone wait without attempts, and are named", async () => {
  const { attempted, fresh, dead } = await leaveSome();
  const { attempts } = await show(attempted);
  await useFile();
  const posts = provider.posts.length;
  await parked();
  expect(await show(fresh)).toMatchObject({
    state: "queued",
    waits_for: "publisher",
    attempts: 0,
    attempt_log: [],
  });
  expect(await show(attempted)).toMatchObject({ state: "queued", waits_for: "publisher", attempts });
  expect(provider.posts).toHaveLength(posts);
  const gone = { publisher: "default", queued: 2, dead: 1, awaiting: 1 };
  expect((await ask("/stats", statsSchema)).gone_publishers).toEqual([gone]);
  expect((await ask("/doctor", doctorReportSchema)).checks).toContainEqual({
    name: "publishers",
    status: "warn",
    detail: expect.stringContaining(
      "default is gone from the settings, with 2 queued, 1 dead and 1 awaiting",
    ),
  });
  expect((await adrelay("status")).stdout).toMatch(/^default +2 +1 +1$/m);
  expect((await adrelay("lookup", fresh)).stdout).toContain("its publisher, which is gone from the settings");
  const name = "adrelay_gone_publisher_ad_responses";
  for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
    await eventually(async () =>
      expect(sumOf(await fetchMetrics(url), name, { publisher: "default", state: "queued" })).toBe(2),
    );
  }
  const replayed = await adrelay("dead", "replay", "--publisher", "default", "--yes");
  expect(replayed).toMatchObject({
    exit: 0,
    stderr: expect.stringContaining("default is gone from the settings, so its 3 queued wait."),
  });
  for (const id of [fresh, dead]) {
    expect((await adrelay("dead", "discard", id, "--reason", "gone", "--yes")).exit).toBe(0);
    expect(await show(id)).toMatchObject({ state: "discarded" });
  }
});

test("another publisher adopts all of it, and the counters balance", async () => {
  const { awaiting, dead, attempted, fresh } = await leaveSome();
  await useFile();
  await parked();
  expect((await byAcme().acknowledgeUntilAccepted(awaiting, "text", PATIENT)).status).toBe(403);
  const misspelt = await adrelay("publishers", "adopt", "defualt", "acme", "--yes");
  expect(misspelt).toMatchObject({
    exit: 2,
    stdout: "",
    stderr: expect.stringContaining("; default is gone"),
  });
  const adopted = await adrelay("publishers", "adopt", "default", "acme", "--yes");
  expect(adopted).toMatchObject({
    exit: 0,
    stdout: "acme has adopted 2 queued, 1 dead and 1 awaiting from default\n",
  });
  for (const id of [attempted, fresh]) {
    await eventually(async () =>
      expect(await show(id)).toMatchObject({ state: "delivered", publisher: "acme" }),
    );
    // The same acknowledgment as before, with the key of the new publisher.
    expect((await byAcme().acknowledgeUntilAccepted(id, "text", PATIENT)).status).toBe(200);
  }
  expect((await byAcme().acknowledgeUntilAccepted(awaiting, "text", PATIENT)).status).toBe(200);
  expect((await adrelay("dead", "replay", dead)).exit).toBe(0);
  await eventually(async () => expect((await byAcme().lookUp(dead)).body["state"]).toBe("delivered"));
  const metrics = await fetchLedgerMetrics(stack.gatewayOpsUrl);
  expect(sumOf(metrics, "adrelay_books_imbalance")).toBe(0);
  expect(sumOf(metrics, "adrelay_acknowledgments", { publisher: "default" })).toBe(0);
  expect(sumOf(metrics, "adrelay_ad_responses_adopted_total", { publisher: "acme" })).toBe(4);
  expect(sumOf(metrics, "adrelay_ad_responses_given_total", { publisher: "default" })).toBe(4);
  expect((await ask("/stats", statsSchema)).gone_publishers).toEqual([]);
  expect((await adrelay("audit")).stdout).toMatch(/admin {2}127\.0\.0\.1 {2}adopt .*from=default to=acme/);
});

test("a publisher that is put back gets its acknowledgments delivered", async () => {
  const { attempted, fresh } = await leaveSome();
  await useFile();
  await parked();
  await useKeys();
  for (const id of [attempted, fresh]) {
    await eventually(async () =>
      expect(await show(id)).toMatchObject({ state: "delivered", publisher: "default" }),
    );
  }
});

test("only a gone publisher is adopted, and only by a configured one", async () => {
  await useFile();
  const configured = await adrelay("publishers", "adopt", "acme", "acme", "--yes");
  expect(configured).toMatchObject({ exit: 2, stderr: expect.stringContaining("acme is in the settings") });
  const unknown = await adrelay("publishers", "adopt", "default", "globe", "--yes");
  expect(unknown).toMatchObject({
    exit: 2,
    stderr: expect.stringContaining("globe is no publisher of the settings"),
  });
  const misspelt = await adrelay("publishers", "adopt", "defualt", "acme", "--yes");
  expect(misspelt).toMatchObject({ exit: 2, stdout: "" });
  expect(misspelt.stderr).toMatch(/publisher: there has been no such publisher; none is gone\n$/);
  const unasked = await adrelay("publishers", "adopt", "default", "acme");
  expect(unasked).toMatchObject({ exit: 2, stderr: expect.stringContaining("--yes") });
});

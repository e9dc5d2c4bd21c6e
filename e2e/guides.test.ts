/** The guides for callers and operators, done as they say: their code blocks run against real processes. */
import { type ChildProcess, spawn } from "node:child_process";
import { randomUUID } from "node:crypto";
import { once } from "node:events";
import { copyFileSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { findRedisServer, freeLanePort, startRedis, startTestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type Behaviour,
  codeBlocks,
  eventually,
  fetchLedgerMetrics,
  filled,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startAdServer,
  startRelayStack,
  startScriptedProvider,
  sumOf,
  TEST_API_KEY,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";

const PATIENT = { headers: { Prefer: "wait=10" } };

let folder: string;
let provider: ScriptedProvider;
const cleanups: (() => unknown)[] = [];

beforeEach(async () => {
  folder = mkdtempSync(join(tmpdir(), "adrelay-guides-"));
  provider = await startScriptedProvider();
  cleanups.push(
    () => rmSync(folder, { recursive: true }),
    () => provider.close(),
  );
});
afterEach(async () => {
  for (const clean of cleanups.splice(0).reverse()) {
    await clean();
  }
});

/** A Redis of this machine with its data in a folder that the test can copy. */
async function startOwnRedis(dir: string, extraArgs: readonly string[] = []) {
  const server = await findRedisServer({ log: () => {}, env: process.env });
  if (server.kind === "none") {
    throw new TypeError("this test needs a Redis server on this machine");
  }
  const redis = await startRedis({ server, dir, choosePort: freeLanePort, extraArgs });
  cleanups.push(() => redis.stop());
  return redis;
}

async function startStack(redisUrl: string, env: Record<string, string> = {}): Promise<RelayStack> {
  const stack = await startRelayStack({ redis: { url: redisUrl }, providerUrl: provider.url, env });
  cleanups.push(() => stack.stop());
  return stack;
}

function connect(url: string, lazyConnect = false): Redis {
  const redis = new Redis(url, { maxRetriesPerRequest: null, lazyConnect });
  redis.on("error", () => {});
  cleanups.push(() => redis.disconnect());
  return redis;
}

/** Sends the commands of a block of a guide, one a line. */
async function runRedisBlock(
  redis: Redis,
  block: string,
  change = (words: string[]) => words,
): Promise<void> {
  for (const line of block.split("\n").filter((text) => text.trim() !== "")) {
    const [command = "", ...words] = change(line.trim().split(" "));
    await redis.call(command, ...words);
  }
}

const pageOfProxy = (status: number | undefined): Behaviour | undefined =>
  status === undefined ? undefined : { kind: "raw", status, bytes: "<html>a page of a proxy" };

/** Starts the example of docs/callers.md in a process of its own: `acknowledge(id, text)`, or `sendLeftOver()`. */
function startExample(
  stack: Pick<RelayStack, "gatewayUrl">,
  call: string,
  change = (code: string) => code,
): ChildProcess {
  writeFileSync(join(folder, "callers.mjs"), change(codeBlocks("docs/callers.md", "js")[0] ?? ""));
  const main = `import * as callers from "./callers.mjs"; console.log(JSON.stringify(await callers.${call}) ?? "");`;
  const env = { RELAY_URL: stack.gatewayUrl, RELAY_KEY: TEST_API_KEY, OUTBOX: join(folder, "outbox") };
  const file = join(folder, "main.mjs");
  writeFileSync(file, main);
  const child = spawn(process.execPath, [file], { env, stdio: ["ignore", "pipe", "inherit"] });
  cleanups.push(() => child.kill("SIGKILL"));
  return child;
}

async function runExample(
  stack: Pick<RelayStack, "gatewayUrl">,
  call: string,
  change?: (code: string) => string,
): Promise<string> {
  const child = startExample(stack, call, change);
  let output = "";
  child.stdout?.on("data", (chunk) => {
    output += chunk;
  });
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  return output.trim();
}

test("the callers' example keeps an acknowledgment through an outage of Redis and its own death", async () => {
  const redis = await startTestRedis();
  cleanups.push(() => redis.dispose());
  const stack = await startStack(redis.url);
  const context = JSON.stringify({ session_id: "s", user_agent: "u", user_ip: "203.0.113.7" });
  const { id, prompt } = JSON.parse(await runExample(stack, `withAd("shoes?", ${context})`));
  expect(prompt).toBe("a prompt with an ad");
  await redis.crash();
  const failing = startExample(stack, `acknowledge("${id}", "the text")`);
  const gateway = stack.apps.get("gateway");
  await eventually(async () => {
    expect(gateway?.logs.some(({ event, status }) => event === "request" && status === 503)).toBe(true);
  });
  failing.kill("SIGKILL");
  await once(failing, "close");
  expect(readdirSync(join(folder, "outbox"))).toEqual([`${id}.json`]);
  await redis.restart();
  await runExample(stack, "sendLeftOver()");
  expect(readdirSync(join(folder, "outbox"))).toEqual([]);
  await eventually(async () => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
  expect(provider.acknowledgmentsOf(id)[0]?.fields["llm_response"]).toBe("the text");
});

test("only the relay's own answers end an acknowledgment of the callers' example", async () => {
  const hurry = (code: string) => code.replace("waitMs = 1000", "waitMs = 1");
  const refused = { kind: "answer", status: 404, body: { code: "unknown_ad_response" } } as const;
  for (const last of [{ ...acknowledged(), status: 201 }, refused]) {
    const id = randomUUID();
    provider.onAcknowledge((_post, count) => pageOfProxy([404, 403, 200][count]) ?? last);
    await runExample({ gatewayUrl: provider.url }, `acknowledge("${id}", "the text")`, hurry);
    expect(provider.acknowledgmentsOf(id)).toHaveLength(4);
    expect(readdirSync(join(folder, "outbox"))).toEqual([]);
  }
});

test("the callers' example goes on without an ad if the relay is away", async () => {
  const stack = { gatewayUrl: `http://127.0.0.1:${await freeLanePort()}` };
  expect(JSON.parse(await runExample(stack, `withAd("shoes?", {})`))).toEqual({ prompt: "shoes?" });
});

test("an answer that is empty, or cut before the ad, is taken, and the first text wins", async () => {
  const redis = await startTestRedis();
  cleanups.push(() => redis.dispose());
  const adServer = await startAdServer(redis);
  cleanups.push(() => adServer.stop());
  const stack = await startRelayStack({ redis, providerUrl: adServer.url });
  cleanups.push(() => stack.stop());
  const caller = relayCaller(stack.gatewayUrl);
  for (const text of ["", "For a first marathon I would"]) {
    const id = await caller.injectUntilFilled();
    const first = await caller.acknowledgeUntilAccepted(id, text, PATIENT);
    expect(first.body).toMatchObject({ status: "no_ad_used" });
    expect((await caller.acknowledgeUntilAccepted(id, text)).body).toEqual(first.body);
    expect((await caller.acknowledgeUntilAccepted(id, `${text} longer`)).status).toBe(409);
  }
});

test("a restored backup delivers what it holds again, under the same idempotency keys, and nothing else", async () => {
  const before = join(folder, "before");
  const old = await startOwnRedis(before);
  const stack = await startStack(old.url, { ACK_WAIT_MS: "0" });
  const caller = relayCaller(stack.gatewayUrl);
  const acknowledgeNew = async () => {
    const id = await caller.injectUntilFilled();
    expect((await caller.acknowledgeUntilAccepted(id, "text")).status).toBe(201);
    return id;
  };
  provider.onAcknowledge(() => ({ kind: "answer", status: 500 }));
  const kept = [await acknowledgeNew(), await acknowledgeNew()];
  const redis = connect(old.url);
  const savedAt = await redis.lastsave();
  const [backUp = "", restore = ""] = codeBlocks("docs/backup.md", "redis");
  await eventually(async () => expect(await redis.lastsave()).toBeLessThan(Math.floor(Date.now() / 1000)));
  await runRedisBlock(redis, backUp);
  await eventually(async () => expect(await redis.lastsave()).toBeGreaterThan(savedAt));
  provider.onAcknowledge(() => acknowledged());
  const lost = await acknowledgeNew();
  const isDelivered = async (id: string, in_ = caller) =>
    expect((await in_.lookUp(id)).body["state"]).toBe("delivered");
  await eventually(() => Promise.all([...kept, lost].map((id) => isDelivered(id))));

  await stack.stop();
  const after = join(folder, "after");
  const empty = await startOwnRedis(after, ["--appendonly", "no"]);
  await empty.stop();
  copyFileSync(join(before, "dump.rdb"), join(after, "dump.rdb"));
  const restored = await startOwnRedis(after, ["--appendonly", "no"]);
  const client = connect(restored.url);
  await runRedisBlock(client, restore);
  await eventually(async () => expect(await client.info("persistence")).toMatch(/aof_rewrite_in_progress:0/));
  const posts = kept.map((id) => provider.acknowledgmentsOf(id).length);
  const next = await startStack(restored.url);
  const nextCaller = relayCaller(next.gatewayUrl);
  await eventually(() => Promise.all(kept.map((id) => isDelivered(id, nextCaller))), 30_000);
  for (const [at, id] of kept.entries()) {
    const seen = provider.acknowledgmentsOf(id);
    expect(seen.length).toBeGreaterThan(posts[at] ?? 0);
    expect(new Set(seen.map(({ headers }) => headers["idempotency-key"])).size).toBe(1);
  }
  expect((await nextCaller.lookUp(lost)).status).toBe(404);
  expect((await nextCaller.acknowledgeUntilAccepted(lost, "text", PATIENT)).status).toBe(200);
  const samples = await fetchLedgerMetrics(next.gatewayOpsUrl);
  expect(sumOf(samples, "adrelay_acknowledgments", { state: "delivered" })).toBe(3);
});

test("Redis' password is replaced while the relay runs, and the old one ends", async () => {
  const server = await startOwnRedis(join(folder, "redis"));
  const admin = connect(server.url);
  const rename = (words: string[]) =>
    words.map((word) => word.replace("new-password", "second").replace("old-password", "first"));
  const [addNew = "", endOld = ""] = codeBlocks("docs/secrets.md", "redis");
  await admin.call("ACL", "SETUSER", "default", "resetpass", ">first");
  const urlWith = (password: string) => server.url.replace("//", `//:${password}@`);
  const stack = await startStack(urlWith("first"));
  await runRedisBlock(admin, addNew, rename);
  for (const app of ["worker", "gateway"] as const) {
    await stack.apps.get(app)?.stop();
    await stack.start(app, { REDIS_URL: urlWith("second") });
  }
  await runRedisBlock(admin, endOld, rename);
  provider.onStart(() => filled());
  const caller = relayCaller(stack.gatewayUrl);
  const id = await caller.injectUntilFilled();
  expect((await caller.acknowledgeUntilAccepted(id, "text", PATIENT)).status).toBe(200);
  const late = connect(urlWith("first"), true);
  await expect(late.connect()).rejects.toThrow();
});

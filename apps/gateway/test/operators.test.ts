/** What each operator of OPERATORS_FILE may see and change, call by call. */
import { createHash } from "node:crypto";
import { mkdtempSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { auditPageSchema, statsSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  callerKeyOf,
  eventually,
  filled,
  type PublishersFile,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  unknownId,
  writePublishersFile,
} from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ADMIN_ACCESS } from "../src/admin/router.ts";
import { ADMIN_CALLS } from "./admin-answers.ts";

const TOKENS = {
  viewer: "token-of-the-viewer",
  acme: "token-of-acme-operator",
  both: "token-of-two-publishers",
  acmeViewer: "token-of-acme-viewer",
  expired: "token-that-has-expired",
} as const;

let redis: TestRedis;
let provider: ScriptedProvider;
let publishers: PublishersFile;
let folder: string;
let stack: RelayStack;
/** A dead letter of each publisher. */
const dead = { acme: "", beta: "" };

const hashOf = (token: string) => createHash("sha256").update(token).digest("hex");

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const account = { providerUrl: provider.url, keyEnv: "SHARED_KEY" };
  publishers = writePublishersFile([
    { id: "acme", ...account },
    { id: "beta", ...account },
  ]);
  folder = mkdtempSync(join(tmpdir(), "adrelay-operators-"));
  const file = join(folder, "operators.yaml");
  writeFileSync(
    file,
    `operators:
  - { name: viewer, role: view, token_sha256: ["${hashOf(TOKENS.viewer)}"] }
  - { name: acme-operator, role: operate, publishers: [acme], token_sha256: ["${hashOf(TOKENS.acme)}"] }
  - { name: both, role: operate, publishers: [acme, beta], token_sha256: ["${hashOf(TOKENS.both)}"] }
  - { name: acme-viewer, role: view, publishers: [acme], token_sha256: ["${hashOf(TOKENS.acmeViewer)}"] }
  - name: expired
    role: operate
    expires: 2026-01-01T00:00:00Z
    token_sha256: ["${hashOf(TOKENS.expired)}"]
`,
  );
  const env = {
    API_KEYS: "",
    PUBLISHERS_FILE: publishers.path,
    SHARED_KEY: "key-of-the-account",
    OPERATORS_FILE: file,
  };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  provider.onStart(() => filled());
  dead.acme = await deadLetter("acme");
  dead.beta = await deadLetter("beta");
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
  publishers.remove();
  rmSync(folder, { recursive: true });
});

async function deadLetter(publisher: string): Promise<string> {
  const caller = relayCaller(stack.gatewayUrl, callerKeyOf(publisher));
  provider.onAcknowledge(() => ({ kind: "answer", status: 422 }));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  await eventually(async () => expect((await caller.lookUp(id)).body["state"]).toBe("dead"));
  return id;
}

async function ask(token: string, call: string, body?: object) {
  const [method = "", path = ""] = call.split(" ");
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const json: unknown = await response.json();
  return { status: response.status, code: String(Object(json).code), json };
}

const CALLS = Object.entries(ADMIN_ACCESS).map(([call, access]) => ({ call, ...access }));
/** The call with an id in the place of its parameter. */
const filledIn = (call: string) => call.replace(/:\w+/, unknownId());

test("each call of the admin API has a role, and a checked form of its answer", () => {
  const forms = CALLS.map(({ call }) => call.replace(/:\w+/, ":id"));
  expect(new Set(forms)).toEqual(new Set(ADMIN_CALLS));
});

test.each(CALLS)("$call needs a token, the role $role and $publishers publishers", async (access) => {
  const call = filledIn(access.call);
  const plain = await fetch(`${stack.gatewayOpsUrl}/admin/v1${call.split(" ")[1]}`, {
    method: call.split(" ")[0] ?? "",
  });
  expect(plain.status).toBe(401);
  const isForbidden = async (token: string) => (await ask(token, call)).code === "forbidden";
  const isOperate = access.role === "operate";
  const isForAll = access.publishers === "all";
  expect({
    viewer: await isForbidden(TOKENS.viewer),
    acme: await isForbidden(TOKENS.acme),
    acmeViewer: await isForbidden(TOKENS.acmeViewer),
    admin: await isForbidden(TEST_ADMIN_TOKEN),
  }).toEqual({ viewer: isOperate, acme: isForAll, acmeViewer: isOperate || isForAll, admin: false });
});

test("an expired token is refused", async () => {
  expect(await ask(TOKENS.expired, "GET /stats")).toMatchObject({ status: 401, code: "unauthenticated" });
});

test("an operator of one publisher lists and finds only its entries", async () => {
  const list = await ask(TOKENS.acme, "GET /acknowledgments");
  expect(list.json).toMatchObject({ acknowledgments: [{ ad_response_id: dead.acme, publisher: "acme" }] });
  expect(await ask(TOKENS.acme, "GET /acknowledgments?publisher=beta")).toMatchObject({
    status: 403,
    code: "forbidden",
  });
  expect((await ask(TOKENS.acme, `GET /acknowledgments/${dead.acme}`)).status).toBe(200);
  for (const call of ["", "/replay", "/discard"]) {
    const method = call === "" ? "GET" : "POST";
    const body = method === "GET" ? undefined : { reason: "x" };
    const answer = await ask(TOKENS.acme, `${method} /acknowledgments/${dead.beta}${call}`, body);
    expect(answer).toMatchObject({ status: 404, code: "unknown_ad_response" });
  }
  const still = await ask(TEST_ADMIN_TOKEN, `GET /acknowledgments/${dead.beta}`);
  expect(still.json).toMatchObject({ state: "dead" });
});

test("an operator of two publishers must name one for a filter", async () => {
  const answer = await ask(TOKENS.both, "POST /replays", { dry_run: true });
  expect(answer.json).toMatchObject({
    status: 422,
    errors: [{ path: "publisher", message: "is missing: your token is limited to acme, beta" }],
  });
  const counted = await ask(TOKENS.both, "POST /replays", { dry_run: true, publisher: "beta" });
  expect(counted.json).toMatchObject({ matched: 1 });
});

test("statistics of an operator of one publisher have nothing of others", async () => {
  // Each has a dead letter, which counts against its quota.
  const all = statsSchema.parse((await ask(TEST_ADMIN_TOKEN, "GET /stats")).json);
  expect(new Set(all.quotas.map(({ publisher }) => publisher))).toEqual(new Set(["acme", "beta"]));
  const { json } = await ask(TOKENS.acmeViewer, "GET /stats");
  expect(JSON.stringify(json)).not.toContain("beta");
  const stats = statsSchema.parse(json);
  expect(stats).toMatchObject({
    states: { dead: 1 },
    publishers: { acme: { dead: 1 } },
    dead_letters: [{ publisher: "acme", count: 1 }],
    providers: [{ provider: "acme", publishers: ["acme"] }],
    queue: null,
    overdue: null,
    storage: null,
    quotas: [{ publisher: "acme", quota: "dead_bytes" }],
    processes: null,
  });
});

test("bulk changes of one publisher are neither seen nor cancelled by operators of another", async () => {
  const order = { publisher: "beta", code: "none", why: "for the test" };
  const started = await ask(TEST_ADMIN_TOKEN, "POST /discards", order);
  expect(started.status).toBe(202);
  const id = String(Object(started.json).discard_id);
  expect((await ask(TOKENS.acme, "GET /discards")).json).toEqual({ discards: [] });
  expect((await ask(TOKENS.acme, `GET /discards/${id}`)).code).toBe("unknown_discard");
  expect((await ask(TOKENS.acme, `POST /discards/${id}/cancel`, {})).code).toBe("unknown_discard");
  expect((await ask(TOKENS.both, `GET /discards/${id}`)).status).toBe(200);
  const own = await ask(TOKENS.acme, "POST /replays", { code: "none" });
  expect(own.json).toMatchObject({ filter: { publisher: "acme" }, created_by: "acme-operator" });
});

const audit = async (token: string) => auditPageSchema.parse((await ask(token, "GET /audit")).json).entries;

test("each change is in the audit with the operator's name and address", async () => {
  const letter = await deadLetter("acme");
  expect((await ask(TOKENS.acme, `POST /acknowledgments/${letter}/discard`, { reason: "old" })).status).toBe(
    200,
  );
  // The bulk changes that tests have started end by themselves.
  const [all, own] = await eventually(async () => {
    const seen = [await audit(TEST_ADMIN_TOKEN), await audit(TOKENS.acmeViewer)] as const;
    const actions = seen[0].map(({ action }) => action);
    expect(actions).toEqual(expect.arrayContaining(["discards_end", "replays_end"]));
    expect(seen[1]).toHaveLength(seen[0].filter(({ publisher }) => publisher === "acme").length);
    return seen;
  });
  expect(all.every(({ by, address }) => by !== "" && address === "127.0.0.1")).toBe(true);
  expect(all.find(({ ad_response_id: id }) => id === letter)).toMatchObject({
    by: "acme-operator",
    action: "discard",
    publisher: "acme",
  });
  expect(new Set(own.map(({ publisher }) => publisher))).toEqual(new Set(["acme"]));
  expect(new Set(all.map(({ publisher }) => publisher))).toEqual(new Set(["acme", "beta"]));
});

test("an erasure is in the audit of the publisher's operators, also if there is no text yet", async () => {
  const letter = await deadLetter("acme");
  const { body } = await relayCaller(stack.gatewayUrl, callerKeyOf("acme")).inject();
  const awaiting = String(body["ad_response_id"]);
  for (const id of [letter, awaiting]) {
    const erasure = { ad_response_id: id, reason: "the user asked" };
    expect((await ask(TOKENS.acme, "POST /erasures", erasure)).status).toBe(200);
  }
  const erasures = (await audit(TOKENS.acme)).filter(({ action }) => action === "erase");
  expect(erasures).toMatchObject([
    { action: "erase", publisher: "acme", ad_response_id: awaiting, by: "acme-operator" },
    { action: "erase", publisher: "acme", ad_response_id: letter, by: "acme-operator" },
  ]);
});

test("a call that a token doesn't allow is logged with name and address", async () => {
  await ask(TOKENS.viewer, "POST /replays", {});
  const logs = stack.apps.get("gateway")?.logs ?? [];
  await eventually(() =>
    expect(logs).toContainEqual(
      expect.objectContaining({ event: "operator_forbidden", by: "viewer", address: "127.0.0.1" }),
    ),
  );
});

const reloads = () =>
  (stack.apps.get("gateway")?.logs ?? []).filter(({ event }) => event === "operators_reloaded");

test("a changed file is in force without a restart: new tokens open, removed ones no longer", async () => {
  const [next, changed] = ["token-that-came-later", join(folder, "next.yaml")];
  const text = `operators: [{ name: later, role: view, token_sha256: ["${hashOf(next)}"] }]`;
  // A wrong token would be slowed down, so the log is what is waited for.
  const before = reloads().length;
  writeFileSync(changed, text);
  renameSync(changed, join(folder, "operators.yaml"));
  await eventually(() => expect(reloads()).toHaveLength(before + 1));
  expect(reloads().at(-1)).toMatchObject({ operators: 2, added: ["later"] });
  expect((await ask(next, "GET /stats")).status).toBe(200);
  expect((await ask(TEST_ADMIN_TOKEN, "GET /stats")).status).toBe(200);
  expect((await ask(TOKENS.viewer, "GET /stats")).status).toBe(401);
});

/** The admin API on a real gateway, worker and Redis: each answer, and the change that it made. */
import { auditPageSchema, statsSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  eventually,
  filled,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { z } from "zod";
import { ADMIN_CALLS, callOf, expectAgreedForm } from "./admin-answers.ts";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;
/** The calls that succeeded. */
const answered = new Set<string>();

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const env = { ADMIN_TOKENS: "alice:token-of-alice-0,bob:token:of:bob-000", DELIVERY_TIMEOUT_MS: "10000" };
  stack = await startRelayStack({ redis, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl);
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), redis.dispose()]);
});
beforeEach(() => {
  provider.onStart(() => filled());
  provider.onAcknowledge(() => acknowledged());
});

/** The members that tests read. `toMatchObject` compares the others. */
const bodySchema = z.looseObject({
  acknowledgments: z.array(z.looseObject({ ad_response_id: z.string() })).default([]),
  next_cursor: z.string().nullish(),
  errors: z.array(z.unknown()).default([]),
  detail: z.string().default(""),
  matched: z.number().default(0),
  replay_id: z.string().default(""),
  replays: z.array(z.unknown()).default([]),
  entries: z.array(z.unknown()).default([]),
  states: z.record(z.string(), z.number()).default({}),
  dead_letters: z
    .array(z.object({ publisher: z.string(), reason: z.string(), count: z.number() }))
    .default([]),
});

interface AdminAnswer {
  readonly status: number;
  readonly headers: Headers;
  readonly text: string;
  readonly json: unknown;
  readonly body: z.infer<typeof bodySchema>;
}

async function admin(
  method: string,
  path: string,
  body?: unknown,
  token = "token-of-alice-0",
): Promise<AdminAnswer> {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, {
    method,
    headers: { Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  const json: unknown = JSON.parse(text);
  const call = callOf(method, path);
  expectAgreedForm(call, response.status, json);
  if (response.ok && call !== undefined) {
    answered.add(call);
  }
  return { status: response.status, headers: response.headers, text, json, body: bodySchema.parse(json) };
}

async function becomes(id: string, state: string): Promise<void> {
  await eventually(async () => expect((await caller.lookUp(id)).body["state"]).toBe(state));
}

/** Acknowledges an ad response that the provider rejects with `status`, and waits until it is a dead letter. */
async function deadLetter(status = 422, code?: string): Promise<string> {
  provider.onAcknowledge(() => ({ kind: "answer", status, body: { code } }));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "what a user wrote", { headers: { Prefer: "respond-async" } });
  await becomes(id, "dead");
  provider.onAcknowledge(() => acknowledged());
  return id;
}

async function refused(): Promise<string> {
  provider.onAcknowledge(() => ({ kind: "answer", status: 406 }));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text");
  await becomes(id, "refused");
  return id;
}

test("a dead letter shows its reason, the provider's code, its size and its attempts", async () => {
  const id = await deadLetter(404, "unknown_ad_response");
  const shown = await admin("GET", `/acknowledgments/${id}`);
  const size = Buffer.byteLength(JSON.stringify({ ad_response_id: id, llm_response: "what a user wrote" }));
  expect(shown.body).toMatchObject({
    ad_response_id: id,
    ad_ack_id: expect.any(String),
    publisher: "default",
    state: "dead",
    status: null,
    reason: "http_404",
    reason_text: "The service doesn't know this ad response.",
    last_code: "http_404",
    provider_error: "unknown_ad_response",
    size_bytes: size,
    late: false,
    attempts: 1,
    failed_attempts: 0,
    provider_ack_id: null,
    attempt_log: [
      { at: expect.any(String), outcome: "die", code: "http_404", duration_ms: expect.any(Number) },
    ],
  });
  expect(shown.text).not.toContain("what a user wrote");
  const { body } = await admin("GET", "/acknowledgments?limit=1");
  const { attempt_log: _log, ...view } = Object(shown.json);
  expect(body.acknowledgments).toEqual([view]);
});

test("an attempt without an answer is shown as an ambiguous retry", async () => {
  provider.onAcknowledge(() => ({ kind: "reset" }));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  await eventually(async () => {
    const { body } = await admin("GET", `/acknowledgments/${id}`);
    expect(body["attempt_log"]).toContainEqual(
      expect.objectContaining({ outcome: "retry", ambiguous: true, code: "connection_lost" }),
    );
  });
  provider.onAcknowledge(() => acknowledged());
  await becomes(id, "delivered");
});

test("a provider's code that isn't a plain token is not kept", async () => {
  const id = await deadLetter(400, "no such thing: what a user wrote");
  expect((await admin("GET", `/acknowledgments/${id}`)).body["provider_error"]).toBeNull();
});

test("pages hold every dead letter of a filter once, newest first", async () => {
  const ids: string[] = [];
  for (let at = 0; at < 5; at += 1) {
    ids.unshift(await deadLetter(413));
  }
  const seen: string[] = [];
  let from: string | undefined = "";
  while (from !== undefined) {
    const { body } = await admin("GET", `/acknowledgments?reason=http_413&publisher=default&limit=2${from}`);
    seen.push(...body.acknowledgments.map((view) => view.ad_response_id));
    from = typeof body.next_cursor === "string" ? `&cursor=${body.next_cursor}` : undefined;
  }
  expect(seen).toEqual(ids);
});

test("awaiting and queued responses are listed too, and times bound the list", async () => {
  const awaiting = await caller.injectUntilFilled();
  provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
  const queued = await caller.injectUntilFilled();
  await caller.acknowledge(queued, "text", { headers: { Prefer: "respond-async" } });
  const idsOf = async (query: string) => {
    const { body } = await admin("GET", `/acknowledgments?${query}`);
    return body.acknowledgments.map((view) => view.ad_response_id);
  };
  expect(await idsOf("state=awaiting&publisher=default")).toContain(awaiting);
  expect(await idsOf("state=queued")).toEqual([queued]);
  expect(await idsOf("state=queued&until=2020-01-01T00:00:00Z")).toEqual([]);
  expect(await idsOf("state=queued&since=2020-01-01T00:00:00Z")).toEqual([queued]);
  provider.onAcknowledge(() => acknowledged());
  await becomes(queued, "delivered");
});

test.each([
  "state=delivered",
  "publisher=not%20an%20id",
  "reason=because",
  "publisher=another",
  "state=queued&publisher=another",
  "code=two%20words",
  "state=queued&code=campaign_ended",
  "state=queued&reason=http_400",
  "since=yesterday",
  "until=2020-13-01T00:00:00Z",
  "limit=0",
  "limit=501",
  "limit=ten",
  "cursor=rubbish",
  "publsher=acme",
  "limit=1&limit=2",
])("the query %s is refused with its faults", async (query) => {
  const answer = await admin("GET", `/acknowledgments?${query}`);
  expect(answer.body).toMatchObject({ status: 422, code: "validation_failed" });
  expect(answer.body.errors.length).toBeGreaterThan(0);
});

const refusalOf = async (method: string, path: string, body?: unknown) => {
  const answer = await admin(method, path, body);
  return { status: answer.status, errors: answer.body.errors };
};

test.each([
  ["GET", "/acknowledgments?publisher=acne", undefined],
  ["GET", "/acknowledgments?state=queued&publisher=acne", undefined],
  ["POST", "/replays", { publisher: "acne", dry_run: true }],
  ["POST", "/replays", { publisher: "acne" }],
  ["POST", "/discards", { publisher: "acne", dry_run: true }],
  ["POST", "/discards", { publisher: "acne", why: "old" }],
])("%s %s %j names the publishers that there are", async (method, path, body) => {
  expect(await refusalOf(method, path, body)).toEqual({
    status: 422,
    errors: [{ path: "publisher", message: "there is no such publisher; known: default" }],
  });
});

test.each([
  ["GET", "/acknowledgments?reason=http_409", undefined],
  ["POST", "/replays", { reason: "http_409" }],
  ["POST", "/discards", { reason: "http_409", why: "old" }],
])("%s %s %j names the reasons that there are", async (method, path, body) => {
  const message = `there is no such reason; known: ${DEAD_REASONS.join(", ")}`;
  expect(await refusalOf(method, path, body)).toEqual({ status: 422, errors: [{ path: "reason", message }] });
});

test("a list is filtered by the provider's own code", async () => {
  const [one, two] = [await deadLetter(422, "campaign_ended"), await deadLetter(404, "campaign_ended")];
  await deadLetter(422, "text_too_long");
  const idsOf = async (query: string) =>
    (await admin("GET", `/acknowledgments?${query}`)).body.acknowledgments.map((view) => view.ad_response_id);
  expect((await idsOf("code=campaign_ended")).toSorted()).toEqual([one, two].toSorted());
  expect(await idsOf("code=campaign_ended&reason=http_404")).toEqual([two]);
  expect(await idsOf("code=another")).toEqual([]);
});

test("a replay puts a dead letter back, once", async () => {
  const id = await deadLetter();
  const answer = await admin("POST", `/acknowledgments/${id}/replay`);
  expect(answer).toMatchObject({ status: 200, body: { ad_response_id: id, state: "queued" } });
  await becomes(id, "delivered");
  const again = await admin("POST", `/acknowledgments/${id}/replay`);
  expect(again.body).toMatchObject({ status: 409, code: "not_dead" });
  expect(again.body.detail).toContain("delivered");
  expect((await admin("GET", `/acknowledgments/${id}`)).body).toMatchObject({
    reason: null,
    provider_error: null,
    status: "ok",
    attempts: 2,
  });
});

test("each replay gives a letter all its attempts again", async () => {
  const id = await deadLetter();
  for (let time = 1; time <= 2; time += 1) {
    const before = provider.acknowledgmentsOf(id).length;
    provider.onAcknowledge((_post, count) =>
      count < before + 3 ? { kind: "answer", status: 503 } : { kind: "answer", status: 422 },
    );
    expect((await admin("POST", `/acknowledgments/${id}/replay`)).status).toBe(200);
    await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(before + 4));
    await becomes(id, "dead");
  }
  const { body } = await admin("GET", `/acknowledgments/${id}`);
  expect(body).toMatchObject({ attempts: 9, failed_attempts: 3 });
});

test("a discard ends a dead letter, and only the audit keeps its reason", async () => {
  const id = await deadLetter();
  const answer = await admin("POST", `/acknowledgments/${id}/discard`, { reason: " a canary of words " });
  expect(answer).toMatchObject({ status: 200, body: { ad_response_id: id, state: "discarded" } });
  await becomes(id, "discarded");
  const { body } = await admin("GET", "/audit?limit=1");
  expect(body.entries).toEqual([
    {
      at: expect.any(String),
      by: "alice",
      address: "127.0.0.1",
      publisher: "default",
      action: "discard",
      ad_response_id: id,
      replay_id: null,
      discard_id: null,
      details: { reason: "a canary of words", from: "dead" },
    },
  ]);
  const logs = [...stack.apps.values()].flatMap((app) => app.logs);
  expect(JSON.stringify(logs)).not.toContain("canary of words");
  expect((await admin("POST", `/acknowledgments/${id}/replay`)).body.detail).toContain("discarded");
});

test.each([
  [{ session_id: "s", publisher: "acne" }, "publisher"],
  [{ session_id: "s", ad_response_id: unknownId() }, "ad_response_id"],
  [{ ad_response_id: unknownId(), publisher: "default" }, "session_id"],
  [{ session_id: "s", cursor: "0" }, "cursor"],
  [{ session_id: "" }, "session_id"],
  // The gateway has no SESSION_HASH_KEYS.
  [{ session_id: "s" }, "session_id"],
])("an erasure of %j is refused by the name of its fault", async (body, path) => {
  const answer = await admin("POST", "/erasures", { ...body, reason: "the user asked" });
  expect(answer.body).toMatchObject({ status: 422, code: "validation_failed", errors: [{ path }] });
});

const ASKED = { reason: "a canary of words", rewrite: "asked" };

test("an erasure of an ad response says what it found, and only the audit keeps its reason", async () => {
  const erase = (id: string) =>
    admin("POST", "/erasures", { ad_response_id: id, reason: "a canary of words", rewrite: true });
  const dead = await deadLetter();
  const answers = { erased: 0, without_text: 0, under_way: 0, next_cursor: null };
  expect((await erase(dead)).json).toEqual({ ...answers, erased: 1, state: "discarded" });
  expect((await erase(dead)).json).toEqual({ ...answers, state: "discarded" });
  expect((await erase(await caller.injectUntilFilled())).json).toEqual({
    ...answers,
    without_text: 1,
    state: "awaiting",
  });
  expect((await erase(unknownId())).body).toMatchObject({ status: 404, code: "unknown_ad_response" });
  const { entries } = auditPageSchema.parse((await admin("GET", "/audit?limit=10")).json);
  const erasures = entries.filter(({ action }) => action === "erase");
  expect(erasures).toContainEqual(expect.objectContaining({ details: ASKED }));
  expect(erasures.filter(({ details }) => !JSON.stringify(details).includes("rewrite"))).toMatchObject([
    { details: { reason: "a canary of words", from: "awaiting" } },
    { ad_response_id: dead, details: { reason: "a canary of words", from: "dead" } },
  ]);
  const logs = [...stack.apps.values()].flatMap((app) => app.logs);
  expect(JSON.stringify(logs)).not.toContain("canary of words");
});

const discard = (id: string) => admin("POST", `/acknowledgments/${id}/discard`, { reason: "old" });

test("a queued acknowledgment is discarded, and callers get 406 from then on", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  await eventually(async () => expect((await caller.lookUp(id)).body["attempts"]).toBeGreaterThan(0));
  // An attempt may be under way.
  await eventually(async () => expect((await discard(id)).status).toBe(200));
  expect((await admin("GET", `/acknowledgments/${id}`)).body).toMatchObject({
    state: "discarded",
    reason: null,
    next_attempt_at: null,
    ended_at: expect.any(String),
  });
  expect((await admin("GET", "/audit?limit=1")).body.entries).toMatchObject([
    { by: "alice", action: "discard", ad_response_id: id, details: { reason: "old", from: "queued" } },
  ]);
  expect((await caller.acknowledge(id, "text")).body).toMatchObject({ code: "not_acknowledgeable" });
  const again = await discard(id);
  expect(again.body).toMatchObject({ status: 409, code: "not_dead" });
  expect(again.body.detail).toContain("Only dead letters and queued acknowledgments can be discarded");
});

test("a discard during an attempt is refused, and works once the attempt has ended", async () => {
  const ended = Promise.withResolvers<void>();
  const answer = { kind: "answer", status: 503 } as const;
  provider.onAcknowledge(() => ({ kind: "held", until: ended.promise, answer }));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
  const early = await discard(id);
  expect(early.body).toMatchObject({ status: 409, code: "attempt_under_way" });
  expect(early.body.detail).toContain("try again in a few seconds");
  expect(early.headers.get("Retry-After")).toBe("5");
  ended.resolve();
  await eventually(async () => expect((await discard(id)).status).toBe(200), 10_000);
  const posts = provider.acknowledgmentsOf(id).length;
  provider.onAcknowledge(() => acknowledged());
  const other = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(other, "text");
  await becomes(other, "delivered");
  expect(provider.acknowledgmentsOf(id)).toHaveLength(posts);
});

test("a caller that waits is told at once when its acknowledgment is discarded", async () => {
  await stack.apps.get("worker")?.stop();
  const id = await caller.injectUntilFilled();
  const startedAtMs = performance.now();
  const waiting = caller.acknowledge(id, "text", { headers: { Prefer: "wait=30" } });
  await eventually(async () => expect((await discard(id)).status).toBe(200));
  expect((await waiting).body).toMatchObject({ status: 406, code: "not_acknowledgeable" });
  expect(performance.now() - startedAtMs).toBeLessThan(10_000);
  await stack.start("worker");
  expect(provider.acknowledgmentsOf(id)).toEqual([]);
});

test.each([{}, { reason: "" }, { reason: "   " }, { reason: "x".repeat(501) }, { reason: "x", more: 1 }])(
  "a discard with %j is refused",
  async (body) => {
    const answer = await admin("POST", `/acknowledgments/${unknownId()}/discard`, body);
    expect(answer.body).toMatchObject({ status: 422, code: "validation_failed" });
  },
);

test.each(["replay", "discard"])(
  "a refused acknowledgment allows no %s, and the answer says why",
  async (verb) => {
    const id = await refused();
    const answer = await admin("POST", `/acknowledgments/${id}/${verb}`, { reason: "old" });
    expect(answer.body).toMatchObject({ status: 409, code: "not_dead" });
    expect(answer.body.detail).toContain("406");
  },
);

test.each(["", "/replay", "/discard"])(
  "an unknown id gets 404 and a malformed one 422: {id}%s",
  async (verb) => {
    const method = verb === "" ? "GET" : "POST";
    const body = verb === "" ? undefined : { reason: "old" };
    const unknown = await admin(method, `/acknowledgments/${unknownId()}${verb}`, body);
    expect(unknown.body).toMatchObject({ status: 404, code: "unknown_ad_response" });
    expect((await admin(method, `/acknowledgments/rubbish${verb}`, body)).status).toBe(422);
  },
);

test("a dry run counts and moves nothing", async () => {
  const id = await deadLetter(400);
  const before = await admin("GET", "/replays");
  const answer = await admin("POST", "/replays", { reason: "http_400", dry_run: true });
  expect(answer.status).toBe(200);
  expect(answer.json).toEqual({
    dry_run: true,
    matched: expect.any(Number),
    complete: true,
    until: expect.any(String),
  });
  expect(answer.body.matched).toBeGreaterThanOrEqual(1);
  expect((await admin("GET", "/replays")).json).toEqual(before.json);
  await becomes(id, "dead");
});

test("a bulk replay delivers what it covers and ends completed", async () => {
  const covered = [await deadLetter(418), await deadLetter(418)];
  const other = await deadLetter(422);
  const started = await admin("POST", "/replays", { reason: "http_4xx", rate_per_second: 50 });
  expect(started.status).toBe(202);
  expect(started.body).toMatchObject({
    replay_id: expect.any(String),
    state: "running",
    filter: { publisher: null, reason: "http_4xx", code: null, since: null, until: null },
    stop_at_share: 0.5,
    stop_after: 20,
    rate_per_second: 50,
    matched: 2,
    replayed: 0,
    outcomes: { delivered: 0, refused: 0, discarded: 0, dead: {}, waiting: 0 },
    created_by: "alice",
    ended_at: null,
  });
  for (const id of covered) {
    await becomes(id, "delivered");
  }
  const path = `/replays/${started.body.replay_id}`;
  await eventually(async () => {
    const { body } = await admin("GET", path);
    expect(body).toMatchObject({ state: "completed", replayed: 2, ended_at: expect.any(String) });
    expect(body["outcomes"]).toMatchObject({ delivered: 2, dead: {}, waiting: 0 });
  });
  await becomes(other, "dead");
  const { body } = await admin("GET", "/replays");
  expect(body.replays[0]).toMatchObject({ replay_id: started.body.replay_id, state: "completed" });
  expect((await admin("POST", `${path}/cancel`)).body).toMatchObject({ status: 409, code: "replay_ended" });
});

test("a cancelled bulk replay leaves the rest dead and is in the audit", async () => {
  const ids = [await deadLetter(404), await deadLetter(404), await deadLetter(404)];
  // A worker would begin.
  await stack.apps.get("worker")?.stop();
  const started = await admin("POST", "/replays", { reason: "http_404", rate_per_second: 1 });
  const path = `/replays/${started.body.replay_id}`;
  const cancelled = await admin("POST", `${path}/cancel`, undefined, "token:of:bob-000");
  expect(cancelled).toMatchObject({ status: 200, body: { state: "cancelled", replayed: 0 } });
  await becomes(String(ids[2]), "dead");
  const { body } = await admin("GET", "/audit?limit=2");
  expect(body.entries).toMatchObject([
    {
      by: "bob",
      action: "replays_cancel",
      replay_id: started.body.replay_id,
      ad_response_id: null,
      details: { replayed: 0 },
    },
    {
      by: "alice",
      action: "replays_start",
      replay_id: started.body.replay_id,
      details: { reason: "http_404", rate_per_second: 1, publisher: null },
    },
  ]);
  const next = await admin("GET", `/audit?limit=1&cursor=${body.next_cursor}`);
  expect(next.body.entries).toHaveLength(1);
  await stack.start("worker");
});

test("a place before the beginning of the audit is refused as cursor", async () => {
  const cursor = Buffer.from("0-0").toString("base64url");
  expect(await admin("GET", `/audit?cursor=${cursor}`)).toMatchObject({ status: 422 });
});

test.each([
  { rate_per_second: 0 },
  { rate_per_second: 10_001 },
  { rate_per_second: 1.5 },
  { reason: "because" },
  { publisher: "a b" },
  { since: "now" },
  { dry_run: "yes" },
  { stop_at_share: 0 },
  { stop_at_share: 1.1 },
  { stop_after: 0 },
  { everything: true },
  { since: "2026-11-28T10:00:00Z", until: "2026-11-28T10:00:00Z" },
])("the bulk replay %j is refused with its faults", async (order) => {
  const answer = await admin("POST", "/replays", order);
  expect(answer.body).toMatchObject({ status: 422, code: "validation_failed" });
});

test.each([
  ["/replays", "dry_run", '{"dry_run":true,"dry_run":false}'],
  ["/discards", "dry_run", '{"why":"old","dry_run":true,"dry_run":false}'],
  [`/acknowledgments/${unknownId()}/discard`, "reason", '{"reason":"old","reason":"new"}'],
])("a call to %s with a repeated member is refused", async (path, repeated, body) => {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, {
    method: "POST",
    headers: { Authorization: `Bearer ${TEST_ADMIN_TOKEN}`, "Content-Type": "application/json" },
    body,
  });
  expect(response.status).toBe(422);
  expect(await response.json()).toMatchObject({
    errors: [{ path: repeated, message: "must not be repeated" }],
  });
});

test("a bulk discard ends what it covers, and only the audit keeps why", async () => {
  const covered = [await deadLetter(422, "gone"), await deadLetter(404, "gone")];
  const other = await deadLetter(422, "kept");
  const dry = await admin("POST", "/discards", { code: "gone", dry_run: true });
  expect(dry.json).toEqual({ dry_run: true, matched: 2, complete: true, until: expect.any(String) });
  const started = await admin("POST", "/discards", { code: "gone", why: " a canary of reasons " });
  expect(started).toMatchObject({ status: 202, body: { state: "running", matched: 2, created_by: "alice" } });
  const path = `/discards/${String(started.body["discard_id"])}`;
  await eventually(async () => {
    const { body } = await admin("GET", path);
    expect(body).toMatchObject({ state: "completed", discarded: 2, ended_at: expect.any(String) });
  });
  for (const id of covered) {
    await becomes(id, "discarded");
  }
  await becomes(other, "dead");
  const { body } = await admin("GET", "/audit?limit=2");
  expect(body.entries).toMatchObject([
    { by: "alice", action: "discards_end", details: { discarded: 2 } },
    {
      by: "alice",
      action: "discards_start",
      discard_id: started.body["discard_id"],
      details: { code: "gone", why: "a canary of reasons", matched: 2 },
    },
  ]);
  const logs = [...stack.apps.values()].flatMap((app) => app.logs);
  expect(JSON.stringify(logs)).not.toContain("canary of reasons");
  expect((await admin("POST", `${path}/cancel`)).body).toMatchObject({ status: 409, code: "discard_ended" });
});

test.each([
  {},
  { why: "" },
  { why: "x".repeat(501) },
  { why: "old", reason: "because" },
  { why: "old", rate_per_second: 5 },
  { why: "old", unknown: false },
  { why: "old", of: "awaiting" },
  { why: "old", of: "queued", reason: "http_404" },
  { why: "old", of: "queued", code: "unknown_ad" },
  { why: "old", since: "2026-11-28T10:00:00Z", until: "2026-11-28T10:00:00Z" },
])("the bulk discard %j is refused with its faults", async (order) => {
  const answer = await admin("POST", "/discards", order);
  expect(answer.body).toMatchObject({ status: 422, code: "validation_failed" });
});

test("queued acknowledgments of invented ids are listed and discarded in bulk, and no others", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 503, body: { code: "closed_today" } }));
  const send = async (id: string) => {
    await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
    return id;
  };
  const known = await send(await caller.injectUntilFilled());
  const invented = await Promise.all([unknownId(), unknownId(), unknownId()].map(send));
  const list = "/acknowledgments?state=queued&unknown=true";
  await eventually(async () => {
    const { acknowledgments } = (await admin("GET", list)).body;
    expect(acknowledgments.map((one) => one.ad_response_id).toSorted()).toEqual(invented.toSorted());
    expect(acknowledgments.map((one) => one["provider_error"])).toContain("closed_today");
  });
  const order = { of: "queued", unknown: true };
  const dry = await admin("POST", "/discards", { ...order, dry_run: true });
  expect(dry.body).toMatchObject({ matched: 3, complete: true });
  const started = await admin("POST", "/discards", { ...order, why: "nobody injected them" });
  expect(started.status).toBe(202);
  expect(started.body).toMatchObject({
    of: "queued",
    matched: 3,
    filter: { unknown: true, publisher: null },
  });
  for (const id of invented) {
    await becomes(id, "discarded");
  }
  await eventually(async () => {
    const { body } = await admin("GET", `/discards/${String(started.body["discard_id"])}`);
    expect(body).toMatchObject({ state: "completed", discarded: 3 });
  });
  provider.onAcknowledge(() => acknowledged());
  await becomes(known, "delivered");
});

test.each(["state=awaiting&unknown=true", "unknown=false", "unknown=1"])(
  "the list %s is refused",
  async (query) => {
    const answer = await admin("GET", `/acknowledgments?${query}`);
    expect(answer.body).toMatchObject({ status: 422, errors: [{ path: "unknown" }] });
  },
);

test("an unknown bulk discard gets 404", async () => {
  expect((await admin("GET", `/discards/${unknownId()}`)).body).toMatchObject({ code: "unknown_discard" });
  expect((await admin("GET", "/discards/rubbish")).status).toBe(404);
  expect((await admin("POST", `/discards/${unknownId()}/cancel`)).status).toBe(404);
});

test("an unknown bulk replay gets 404", async () => {
  expect((await admin("GET", `/replays/${unknownId()}`)).body).toMatchObject({ code: "unknown_replay" });
  expect((await admin("GET", "/replays/rubbish")).status).toBe(404);
  expect((await admin("POST", `/replays/${unknownId()}/cancel`)).status).toBe(404);
});

test.each([
  ["default", { to: "default" }, "publisher"],
  ["nobody", { to: "default" }, "publisher"],
  ["nobody", { to: "nobody" }, "to"],
  ["nobody", {}, "to"],
  ["not an id", { to: "default" }, "publisher"],
  ["nobody", { to: "default", cursor: "eA" }, "cursor"],
  ["nobody", { to: "default", rate: 1 }, ""],
])("an adoption of %s with %j gets 422", async (gone, form, path) => {
  const { status, body } = await admin("POST", `/publishers/${encodeURIComponent(gone)}/adopt`, form);
  expect(status).toBe(422);
  expect(body.errors).toContainEqual(expect.objectContaining({ path }));
});

test("every call answers in the contract's form, in each state", async () => {
  answered.clear();
  const [dead, discarded] = [await deadLetter(), await deadLetter()];
  const [waiting, decided] = [await caller.injectUntilFilled(), await refused()];
  await admin("POST", `/acknowledgments/${discarded}/discard`, { reason: "old" });
  provider.onAcknowledge(() => ({ kind: "answer", status: 503 }));
  const queued = await caller.injectUntilFilled();
  await caller.acknowledge(queued, "text", { headers: { Prefer: "respond-async" } });
  const states = new Map([
    [dead, "dead"],
    [discarded, "discarded"],
    [waiting, "awaiting"],
    [queued, "queued"],
    [decided, "refused"],
  ]);
  for (const [id, state] of states) {
    expect((await admin("GET", `/acknowledgments/${id}`)).body).toMatchObject({ state });
  }
  provider.onAcknowledge(() => acknowledged());
  for (const path of ["/acknowledgments?state=queued", "/acknowledgments?state=awaiting", "/doctor"]) {
    expect((await admin("GET", path)).status).toBe(200);
  }
  await admin("POST", "/replays", { dry_run: true });
  const started = await admin("POST", "/replays", { rate_per_second: 1, since: "2020-01-01T00:00:00+02:00" });
  await admin("GET", `/replays/${started.body.replay_id}`);
  await admin("POST", `/replays/${started.body.replay_id}/cancel`);
  // With a worker, it would end before it is cancelled.
  await stack.apps.get("worker")?.stop();
  const discarding = await admin("POST", "/discards", { until: "2020-01-01T00:00:00Z", why: "old" });
  const discardPath = `/discards/${String(discarding.body["discard_id"])}`;
  await admin("GET", discardPath);
  await admin("POST", `${discardPath}/cancel`);
  await stack.start("worker");
  await admin("POST", `/acknowledgments/${dead}/replay`);
  await admin("POST", "/erasures", { ad_response_id: discarded, reason: "the user asked" });
  const cursor = Buffer.from("queued").toString("base64url");
  expect((await admin("POST", "/publishers/nobody/adopt", { to: "default", cursor })).body).toMatchObject({
    adopted: { awaiting: 0, queued: 0, dead: 0 },
    under_way: 0,
  });
  for (const path of ["/acknowledgments", "/replays", "/discards", "/publishers", "/audit", "/stats"]) {
    await admin("GET", path);
  }
  expect([...answered].toSorted()).toEqual(ADMIN_CALLS.toSorted());
  await becomes(queued, "delivered");
  await becomes(dead, "delivered");
});

test("stats show states, dead letters, queue, providers and processes", async () => {
  await deadLetter(413);
  // A letter is dead in the ledger before its job has left its attempt.
  const { status, body } = await eventually(async () => {
    const answer = await admin("GET", "/stats");
    expect(answer.body).toMatchObject({ queue: { active: 0 } });
    return answer;
  });
  expect(status).toBe(200);
  expect(body).toMatchObject({
    at: expect.any(String),
    version: expect.stringMatching(/^\d+\.\d+\.\d+/),
    states: { awaiting: expect.any(Number), queued: 0, missed: 0, expired: 0 },
    overdue: 0,
    oldest_queued_age_seconds: null,
    oldest_dead_letter_age_seconds: expect.any(Number),
    queue: { waiting: 0, active: 0, delayed: 0, failed: body.states["dead"] },
    providers: [{ provider: "default", publishers: ["default"], circuit: "closed", parked: 0 }],
    data_loss: null,
  });
  const roles = statsSchema.parse(body).processes?.map(({ role }) => role);
  expect(roles?.toSorted()).toEqual(["gateway", "worker"]);
  expect(body["publishers"]).toEqual({ default: body.states });
  const counts = body.dead_letters;
  expect(counts.reduce((sum, { count }) => sum + count, 0)).toBe(body.states["dead"]);
  expect(counts.find(({ reason }) => reason === "http_413")).toMatchObject({ publisher: "default" });
});

test.each(["token-of-alice-0", "token:of:bob-000", TEST_ADMIN_TOKEN])(
  "the token %s is accepted",
  async (token) => {
    expect((await admin("GET", "/stats", undefined, token)).status).toBe(200);
  },
);

test.each(["", "guess", "alice", "alice:token-of-alice-0"])("the token %j gets 401", async (token) => {
  const answer = await admin("GET", "/stats", undefined, token);
  expect(answer.body).toMatchObject({ status: 401, code: "unauthenticated" });
  expect(answer.headers.get("WWW-Authenticate")).toBe("Bearer");
});

test.each([
  ["POST", "/stats", "GET, HEAD"],
  ["DELETE", "/acknowledgments", "GET, HEAD"],
  ["PUT", "/acknowledgments/x", "GET, HEAD"],
  ["GET", "/acknowledgments/x/replay", "POST"],
  ["GET", "/acknowledgments/x/discard", "POST"],
  ["DELETE", "/replays", "GET, HEAD, POST"],
  ["DELETE", "/replays/x", "GET, HEAD"],
  ["DELETE", "/discards", "GET, HEAD, POST"],
  ["GET", "/discards/x/cancel", "POST"],
  ["GET", "/replays/x/cancel", "POST"],
  ["POST", "/audit", "GET, HEAD"],
])("%s %s gets 405 with the allowed methods", async (method, path, allowed) => {
  const answer = await admin(method, path);
  expect(answer.body).toMatchObject({ status: 405, code: "method_not_allowed" });
  expect(answer.headers.get("Allow")).toBe(allowed);
});

test.each([
  ["text/plain", '{"reason":"old"}', 415, "unsupported_media_type"],
  ["application/json", "", 400, "invalid_json"],
  ["application/json", '{"reason":', 400, "invalid_json"],
  ["application/json", '["old"]', 422, "validation_failed"],
  ["application/json", `{"reason":"${"x".repeat(20_000)}"}`, 413, "payload_too_large"],
])("a body of %s that is %.20s is refused with %d", async (type, body, status, code) => {
  for (const path of [`/acknowledgments/${unknownId()}/discard`, "/replays", "/discards"]) {
    const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, {
      method: "POST",
      headers: { Authorization: "Bearer token-of-alice-0", "Content-Type": type },
      body,
    });
    expect(await response.json()).toMatchObject({ status, code });
  }
});

test("while Redis doesn't answer, every call gets 503 with Retry-After", async () => {
  const id = await deadLetter();
  await redis.freeze();
  const calls = [
    ["GET", "/stats"],
    ["GET", "/acknowledgments"],
    ["GET", `/acknowledgments/${id}`],
    ["POST", `/acknowledgments/${id}/discard`, { reason: "old" }],
    ["GET", "/replays"],
    ["POST", "/replays", { dry_run: true }],
    ["GET", "/discards"],
    ["POST", "/discards", { dry_run: true }],
    ["GET", "/acknowledgments?publisher=acne"],
    ["GET", "/audit"],
  ] as const;
  const answers = await Promise.all(calls.map(([method, path, body]) => admin(method, path, body)));
  await redis.thaw();
  for (const answer of answers) {
    expect(answer.body).toMatchObject({ status: 503, code: "queue_unavailable" });
    expect(answer.headers.get("Retry-After")).toBe("1");
  }
  await eventually(async () => expect((await admin("GET", "/stats")).status).toBe(200), 10_000);
});

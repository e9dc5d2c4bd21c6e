/** Acknowledgments through a real gateway and worker: every documented answer, waits, repeats, conflicts. */
import { randomUUID } from "node:crypto";
import { ACKNOWLEDGE_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type Answer,
  acknowledged,
  dumpRedis,
  eventually,
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
  unfilled,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

let redis: TestRedis;
let provider: ScriptedProvider;
let stack: RelayStack;
let caller: RelayCaller;

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  // A busy machine needs longer than the default to deliver.
  const env = { ACK_WAIT_MS: "10000" };
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

const stateOf = async (id: string) => (await caller.lookUp(id)).body["state"];
const becomes = (id: string, state: string) => eventually(async () => expect(await stateOf(id)).toBe(state));
const replay = (id: string, token = TEST_ADMIN_TOKEN) =>
  fetch(`${stack.gatewayOpsUrl}/admin/v1/acknowledgments/${id}/replay`, {
    method: "POST",
    headers: { Authorization: `Bearer ${token}` },
  });

test.each(["ok", "no_ad_used"] as const)(
  "the provider's verdict %s comes within the wait",
  async (verdict) => {
    const theirs = acknowledged(verdict);
    provider.onAcknowledge(() => theirs);
    const id = await caller.injectUntilFilled();
    const answer = await caller.acknowledgeUntilAccepted(id, "text");
    expect(answer.status).toBe(200);
    expect(answer.body).toEqual({ ad_ack_id: expect.any(String), status: verdict, success: true });
    expect(answer.headers.get("X-Adrelay-Provider-Ack-Id")).toBe(Object(theirs).body.ad_ack_id);
  },
);

test("respond-async is answered immediately, and delivered too", async () => {
  const id = await caller.injectUntilFilled();
  const answer = await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "respond-async" } });
  expect(answer.status).toBe(201);
  expect(answer.headers.get("Preference-Applied")).toBe("respond-async");
  expect(answer.body).toEqual({ ad_ack_id: expect.any(String), status: "recoverable_error", success: false });
  await becomes(id, "delivered");
});

test("a recoverable error is retried on schedule until it is ok", async () => {
  provider.onAcknowledge((_post, count) => acknowledged(count < 3 ? "recoverable_error" : "ok"));
  const id = await caller.injectUntilFilled();
  const answer = await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=20" } });
  expect(answer.status).toBe(200);
  const posts = provider.acknowledgmentsOf(id);
  expect(posts).toHaveLength(4);
  expect(new Set(posts.map(({ headers }) => headers["idempotency-key"]))).toEqual(
    new Set([answer.body["ad_ack_id"]]),
  );
  const gapsMs = posts.slice(1).map(({ atMs }, at) => atMs - (posts[at]?.atMs ?? 0));
  expect(Math.min(...gapsMs)).toBeGreaterThanOrEqual(80);
});

test("a 406 is never retried or replayed, and repeats get 406 too", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 406 }));
  const id = await caller.injectUntilFilled();
  expect((await caller.acknowledgeUntilAccepted(id, "text")).body).toMatchObject({
    status: 406,
    code: "not_acknowledgeable",
  });
  expect((await caller.acknowledgeUntilAccepted(id, "text")).status).toBe(406);
  const replayed = await replay(id);
  expect(replayed.status).toBe(409);
  expect(await replayed.json()).toMatchObject({ code: "not_dead", detail: expect.stringContaining("406") });
  expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
});

test.each([201, 202] as const)(
  "an acknowledgment of a %d injection gets 406 without a call to the provider",
  async (status) => {
    provider.onStart(() => unfilled(status));
    const id = String((await caller.inject()).body["ad_response_id"]);
    expect((await caller.acknowledgeUntilAccepted(id, "text")).status).toBe(406);
    expect(provider.acknowledgmentsOf(id)).toHaveLength(0);
  },
);

test("a provider's 409 counts as delivered", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 409 }));
  const id = await caller.injectUntilFilled();
  expect((await caller.acknowledgeUntilAccepted(id, "text")).status).toBe(200);
  await becomes(id, "delivered");
});

test.each([
  { kind: "answer", status: 500 },
  { kind: "answer", status: 429, headers: { "retry-after": "1" } },
  { kind: "hang" },
  { kind: "drip" },
  { kind: "reset" },
  { kind: "raw", status: 200, bytes: "not json" },
] as const)(
  "after a first attempt that ends as %j the next one delivers the same bytes",
  async (behaviour) => {
    provider.onAcknowledge((_post, count) => (count === 0 ? behaviour : acknowledged()));
    const id = await caller.injectUntilFilled();
    const answer = await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=0" } });
    expect(answer.status).toBe(201);
    await becomes(id, "delivered");
    const [first, second] = provider.acknowledgmentsOf(id);
    expect(second?.body).toEqual(first?.body);
  },
);

test.each([400, 413, 422, 418])(
  "a %d makes a dead letter immediately, which can be replayed",
  async (status) => {
    provider.onAcknowledge((_post, count) => (count === 0 ? { kind: "answer", status } : acknowledged()));
    const id = await caller.injectUntilFilled();
    expect((await caller.acknowledgeUntilAccepted(id, "text")).status).toBe(201);
    await becomes(id, "dead");
    expect((await caller.acknowledgeUntilAccepted(id, "text")).status).toBe(201);
    expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
    expect((await replay(id)).status).toBe(200);
    await becomes(id, "delivered");
    expect((await replay(id)).status).toBe(409);
  },
);

test.each([
  ["a login page's redirect", { kind: "raw", status: 302, bytes: "" }],
  ["a proxy's page", { kind: "raw", status: 404, bytes: "<html>not found</html>" }],
  ["a proxy's text", { kind: "raw", status: 404, bytes: "page not found" }],
  ["a page with 200", { kind: "raw", status: 200, bytes: "<html>sign in</html>" }],
] as const)("%s ends no acknowledgment", async (_name, behaviour) => {
  provider.onAcknowledge((_post, count) => (count === 0 ? behaviour : acknowledged()));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text");
  await becomes(id, "delivered");
});

test("an id that the ledger knows is never said to be unknown", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 404, body: { code: "unknown_ad_response" } }));
  const id = await caller.injectUntilFilled();
  const answer = await caller.acknowledgeUntilAccepted(id, "text");
  expect(answer.body).toMatchObject({ status: "recoverable_error" });
});

test("an unknown id is accepted, forwarded, and counted", async () => {
  const id = unknownId();
  expect((await caller.acknowledgeUntilAccepted(id, "text")).status).toBe(200);
  const samples = await fetchMetrics(stack.gatewayOpsUrl);
  expect(sumOf(samples, "adrelay_acknowledgments_unknown_total")).toBeGreaterThan(0);
});

test("an id that the provider doesn't know either is unknown", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 404 }));
  const answer = await caller.acknowledgeUntilAccepted(unknownId(), "text");
  expect(answer.body).toMatchObject({ status: 404, code: "unknown_ad_response" });
});

test("the first and each later answer of a dead one agree", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 404 }));
  const [unknown, known] = [unknownId(), await caller.injectUntilFilled()];
  for (const [id, status] of [
    [unknown, 404],
    [known, 201],
  ] as const) {
    const first = await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=20" } });
    const again = await caller.acknowledgeUntilAccepted(id, "text");
    const { request_id: _ours, ...body } = first.body;
    expect([first.status, first.headers.get("X-Adrelay-State")]).toEqual([status, "dead"]);
    expect([again.status, again.headers.get("X-Adrelay-State")]).toEqual([status, "dead"]);
    expect(again.body).toMatchObject(body);
  }
});

test("each answer tells the state of the acknowledgment", async () => {
  const stateIn = (answer: Answer) => answer.headers.get("X-Adrelay-State");
  const noWait = { headers: { Prefer: "respond-async" } };
  provider.onAcknowledge(() => acknowledged("recoverable_error"));
  const id = await caller.injectUntilFilled();
  expect(stateIn(await caller.acknowledgeUntilAccepted(id, "text", noWait))).toBe("queued");
  provider.onAcknowledge(() => acknowledged());
  await becomes(id, "delivered");
  expect(stateIn(await caller.acknowledgeUntilAccepted(id, "text"))).toBe("delivered");
  expect(stateIn(await caller.acknowledgeUntilAccepted(id, "another text"))).toBeNull();
  provider.onAcknowledge(() => ({ kind: "answer", status: 406 }));
  const refused = await caller.injectUntilFilled();
  expect(stateIn(await caller.acknowledgeUntilAccepted(refused, "text"))).toBe("refused");
  expect(stateIn(await caller.acknowledgeUntilAccepted(refused, "text"))).toBe("refused");
  expect(stateIn(await caller.lookUp(refused))).toBe("refused");
});

test("the fault of a malformed answer to an acknowledgment is in the attempt's log line", async () => {
  const body = { status: "ok", success: true };
  provider.onAcknowledge((_post, count) =>
    count === 0 ? { kind: "answer", status: 200, body } : acknowledged(),
  );
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text");
  await becomes(id, "delivered");
  await eventually(() => {
    const lines = stack.apps.get("worker")?.logs ?? [];
    expect(lines.find((line) => line["ad_response_id"] === id)).toMatchObject({
      code: "malformed_answer",
      answer_fault: "ad_ack_id must be a string",
    });
    return Promise.resolve();
  });
});

test("the same text again has the same id and outcome, and another text is a conflict", async () => {
  const id = await caller.injectUntilFilled();
  const first = await caller.acknowledgeUntilAccepted(id, "text");
  const again = await caller.acknowledgeUntilAccepted(id.toUpperCase(), "text");
  expect(again.body).toEqual(first.body);
  const other = await caller.acknowledgeUntilAccepted(id, "another text");
  expect(other.body).toMatchObject({ status: 409, code: "acknowledgment_conflict" });
  expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
});

test.each(["respond-async", "wait=10"])(
  "a repeat waits for the outcome, also if the first call said Prefer: %s",
  async (prefer) => {
    provider.onAcknowledge(() => ({ kind: "late", delayMs: 600, answer: acknowledged() }));
    const id = await caller.injectUntilFilled();
    const first = caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: prefer } });
    await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(1));
    const repeat = await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=10" } });
    expect(repeat.headers.get("Preference-Applied")).toBe("wait=10");
    expect([repeat.status, repeat.body["status"]]).toEqual([200, "ok"]);
    expect((await first).status).toBe(prefer === "wait=10" ? 200 : 201);
    expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
  },
);

test("a repeat is answered early if the next attempt comes after its wait", async () => {
  provider.onAcknowledge(() => ({ kind: "answer", status: 429, headers: { "retry-after": "60" } }));
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=20" } });
  const repeat = await caller.acknowledgeUntilAccepted(id, "text", { headers: { Prefer: "wait=20" } });
  expect([repeat.status, repeat.headers.get("X-Adrelay-State")]).toEqual([201, "queued"]);
  expect(repeat.durationMs).toBeLessThan(10_000);
});

test("of a hundred concurrent requests with two texts one text is delivered once", async () => {
  const id = await caller.injectUntilFilled();
  const answers = await Promise.all(
    Array.from({ length: 100 }, (_, at) => caller.acknowledgeUntilAccepted(id, `text ${at % 2}`)),
  );
  const statuses = answers.map(({ status }) => status);
  expect(statuses.every((status) => [200, 201, 409].includes(status))).toBe(true);
  expect(statuses.filter((status) => status === 409)).toHaveLength(50);
  await becomes(id, "delivered");
  expect(provider.acknowledgmentsOf(id)).toHaveLength(1);
});

test("a text with lone surrogates, a NUL and every script arrives byte for byte", async () => {
  const id = await caller.injectUntilFilled();
  const body = `{"extra":1.50,"llm_response":"\\ud800 \\u0000 走る 🏃‍♀️ عربي \u2028 \\"q\\" \\\\","ad_response_id":"${id}","zz":[1e2]}`;
  expect((await caller.send(ACKNOWLEDGE_PATH, body)).status).toBe(200);
  expect(provider.acknowledgmentsOf(id)[0]?.body.toString()).toBe(body);
});

test("texts that differ only in a lone surrogate are different texts", async () => {
  const id = await caller.injectUntilFilled();
  await caller.acknowledgeUntilAccepted(id, "\ud800");
  expect((await caller.acknowledgeUntilAccepted(id, "\ud801")).status).toBe(409);
});

test("a body of exactly the limit arrives and one byte more is 413", async () => {
  const id = await caller.injectUntilFilled();
  const frame = JSON.stringify({ ad_response_id: id, llm_response: "" }).length;
  const text = "a".repeat(1_048_576 - frame);
  expect((await caller.acknowledgeUntilAccepted(id, text)).status).toBe(200);
  expect(provider.acknowledgmentsOf(id)[0]?.body.length).toBe(1_048_576);
  const over = await caller.acknowledgeUntilAccepted(id, `${text}a`);
  expect(over.body).toMatchObject({ status: 413, code: "payload_too_large" });
});

test.each([
  ['{"ad_response_id": ', 400, "invalid_json"],
  ["", 400, "invalid_json"],
  ["nul", 400, "invalid_json"],
  ["[1]", 422, "validation_failed"],
  ["null", 422, "validation_failed"],
  ["{}", 422, "validation_failed"],
  ['{"ad_response_id":"x","llm_response":"y"}', 422, "validation_failed"],
  ['{"ad_response_id":1,"llm_response":["y"]}', 422, "validation_failed"],
  [
    `{"ad_response_id":"${randomUUID()}","ad_response_id":"${randomUUID()}","llm_response":"y"}`,
    422,
    "validation_failed",
  ],
  [
    `{"ad_response_id":"${randomUUID()}","llm_response":"y","llm\\u005fresponse":"z"}`,
    422,
    "validation_failed",
  ],
  [Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d]), 400, "invalid_json"],
  ["[".repeat(200_000), 400, "invalid_json"],
])("the body %j is answered with %d %s", async (body, status, code) => {
  const answer = await caller.send(ACKNOWLEDGE_PATH, body);
  expect(answer.body).toMatchObject({ status, code, request_id: answer.headers.get("X-Request-Id") });
  expect(answer.headers.get("Content-Type")).toContain("application/problem+json");
});

test("ten thousand unknown fields are forwarded in order", async () => {
  const id = await caller.injectUntilFilled();
  const many = Array.from({ length: 10_000 }, (_, at) => `"f${at}":${at}`).join(",");
  const body = `{${many},"ad_response_id":"${id}","llm_response":"y"}`;
  expect((await caller.send(ACKNOWLEDGE_PATH, body)).status).toBe(200);
  expect(provider.acknowledgmentsOf(id)[0]?.body.toString()).toBe(body);
});

test("a user's text is in Redis only until it is delivered", async () => {
  const canary = `canary-${randomUUID()}`;
  const id = await caller.injectUntilFilled();
  provider.onAcknowledge((_post, count) => (count === 0 ? { kind: "hang" } : acknowledged()));
  await caller.acknowledgeUntilAccepted(id, canary, { headers: { Prefer: "respond-async" } });
  expect(await dumpRedis(redis.url)).toContain(canary);
  await becomes(id, "delivered");
  await eventually(async () => expect(await dumpRedis(redis.url)).not.toContain(canary));
});

test("an admin call without a token is refused with a hint", async () => {
  const answer = await replay(unknownId(), "guess");
  expect(answer.status).toBe(401);
  expect(answer.headers.get("WWW-Authenticate")).toBe("Bearer");
  expect((await replay(unknownId())).status).toBe(404);
  expect((await replay("rubbish")).status).toBe(422);
});

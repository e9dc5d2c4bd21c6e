/**
 * Guards users' texts and secrets (invariant 6). Canaries, such as a key, an e-mail address and a card number, are put
 * wherever a caller, a provider or an operator can put them, with and without faults. No log line, metric, error answer
 * or trace may contain one, and Redis only until the acknowledgment has ended.
 *
 * Not checked: the provider's answer to an injection, which passes through to the caller who sent the text.
 */
import { ACKNOWLEDGE_PATH, ACKNOWLEDGMENTS_PATH, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type Answer,
  type AppProcess,
  acknowledged,
  type Behaviour,
  dumpRedis,
  eventually,
  filled,
  type OtlpCollector,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  type SendOptions,
  startApp,
  startOtlpCollector,
  startRelayStack,
  startScriptedProvider,
  TEST_ADMIN_TOKEN,
  TEST_INJECTION,
  unknownId,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";

const EMAIL = "canary.jane@example.net";
const CARD = "4111111111111111";
const SPACED_CARD = "4111 1111 1111 1111";
/** A key that a user pasted into a chat. */
const PASTED_KEY = "sk-canary-pasted-0123456789";
const CALLER_KEY = "canary-key-of-a-caller";
const PROVIDER_KEY = "canary-key-at-the-provider";
const OPERATOR_TOKEN = "canary-token-of-an-operator";
const COLLECTOR_KEY = "canary-key-at-the-collector";
const TEXT = `Write to ${EMAIL}, pay with ${CARD} or ${SPACED_CARD}, my key is ${PASTED_KEY}.`;
const USER_IP = "198.51.100.77";
const USER_TEXTS = [EMAIL, CARD, SPACED_CARD, PASTED_KEY, USER_IP];
const SECRETS = [COLLECTOR_KEY, CALLER_KEY, PROVIDER_KEY, OPERATOR_TOKEN, TEST_ADMIN_TOKEN];
const CANARIES = [...USER_TEXTS, ...SECRETS];

/** Headers that a caller may send, known to us or not. */
const ODD_HEADERS = {
  "User-Agent": `agent ${TEXT}`,
  "X-Forwarded-For": USER_IP,
  "X-Request-Id": `id ${EMAIL}`,
  Authorization: `Bearer ${PASTED_KEY}`,
  Cookie: `card=${CARD}`,
  Referer: `https://example.net/?mail=${EMAIL}`,
  baggage: `card=${CARD}`,
  tracestate: `card=${CARD}`,
  [`X-${PASTED_KEY}`]: TEXT,
};
const INJECTION = {
  ...TEST_INJECTION,
  prompt: TEXT,
  request_context: { session_id: CARD, user_agent: TEXT, user_ip: USER_IP },
  [TEXT]: { [CARD]: [TEXT] },
};
const QUERY = `?key=${PASTED_KEY}&mail=${EMAIL}&card=${CARD}`;
const ASYNC = { Prefer: `respond-async, ${PASTED_KEY}=${CARD}` };

let redis: TestRedis;
let provider: ScriptedProvider;
let collector: OtlpCollector;
let stack: RelayStack;
let caller: RelayCaller;
/** Every process, also killed ones. */
let apps: AppProcess[];
/** Bodies and headers of our error answers, and of all answers to operators, in the test that runs. */
let refusals: string[];
/** How many there were before the test that runs. */
let before: { readonly posts: number; readonly spans: number; readonly failures: number };

beforeAll(async () => {
  [redis, provider, collector] = await Promise.all([
    startTestRedis(),
    startScriptedProvider(),
    startOtlpCollector(),
  ]);
  stack = await startRelayStack({
    redis,
    providerUrl: provider.url,
    env: {
      LOG_LEVEL: "trace",
      API_KEYS: CALLER_KEY,
      PROVIDER_API_KEY: PROVIDER_KEY,
      ADMIN_TOKENS: `carol:${OPERATOR_TOKEN}`,
      BODY_LIMIT_BYTES: "20000",
      DELIVERY_TIMEOUT_MS: "300",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: `x-tenant-key=${COLLECTOR_KEY}`,
      OTEL_BSP_SCHEDULE_DELAY: "20",
    },
  });
  caller = relayCaller(stack.gatewayUrl, CALLER_KEY);
  apps = [...stack.apps.values()];
});
afterAll(async () => {
  await stack.stop();
  await Promise.all([provider.close(), collector.close()]);
  await redis.dispose();
});

beforeEach(() => {
  provider.onStart(() => filled());
  provider.onAcknowledge(() => acknowledged());
  refusals = [];
  before = {
    posts: provider.posts.length,
    spans: collector.spans.length,
    failures: intakeFailures().length,
  };
});

const intakeFailures = () =>
  apps.flatMap(({ logs }) => logs).filter(({ event }) => event === "intake_failed");

function keepRefusal(answer: Answer): Answer {
  if (answer.status >= 400 && answer.headers.get("Content-Type")?.includes("problem") === true) {
    refusals.push(answer.text, JSON.stringify([...answer.headers]));
  }
  return answer;
}

const send = async (path: string, body: string | undefined, options: SendOptions = {}) =>
  keepRefusal(await caller.send(path, body, { ...options, headers: { ...ODD_HEADERS, ...options.headers } }));

/** Repeats the injection until it has an ad: on a loaded machine it may become a fallback. */
const injected = () =>
  eventually(async () => {
    const answer = await send(INJECTION_PATH + QUERY, JSON.stringify(INJECTION));
    expect(answer.status).toBe(200);
    return String(answer.body["ad_response_id"]);
  });

function acknowledgeOnce(
  id: string,
  options: SendOptions = { headers: ASYNC },
  text = TEXT,
): Promise<Answer> {
  const body = { ad_response_id: id, llm_response: text, [CARD]: TEXT, nested: { [EMAIL]: TEXT } };
  return send(ACKNOWLEDGE_PATH + QUERY, JSON.stringify(body), options);
}

/**
 * Repeats the acknowledgment after each 503, which Redis on a loaded machine may cause, and after each 429: a gateway may have learned
 * of a Redis with one byte of memory, and of its publishers' shares of that.
 */
const acknowledge: typeof acknowledgeOnce = (...call) =>
  eventually(async () => {
    const answer = await acknowledgeOnce(...call);
    expect([429, 503]).not.toContain(answer.status);
    return answer;
  });

const stateOf = async (id: string) => (await caller.lookUp(id)).body["state"];
const becomes = (id: string, state: string) =>
  eventually(async () => expect(await stateOf(id)).toBe(state), 20_000);

async function admin(path: string, token: string, body?: object): Promise<number> {
  const response = await fetch(`${stack.gatewayOpsUrl}/admin/v1${path}`, {
    method: body === undefined ? "GET" : "POST",
    headers: { ...ODD_HEADERS, Authorization: `Bearer ${token}`, "Content-Type": "application/json" },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  refusals.push(await response.text(), JSON.stringify([...response.headers]));
  return response.status;
}

/** Fails if a log, metric, error answer or trace contains a canary. */
async function expectNoLeak(): Promise<void> {
  const metrics = [stack.gatewayOpsUrl, stack.workerOpsUrl].map(async (url) => {
    const pages = ["/metrics", "/readyz"].map(async (path) => (await fetch(url + path)).text());
    return (await Promise.all(pages)).join("\n");
  });
  await eventually(() => expect(collector.spans.length).toBeGreaterThan(before.spans));
  const outputs = {
    logs: apps.map(({ logs }) => JSON.stringify(logs)).join("\n"),
    stderr: apps.map((app) => app.stderr()).join("\n"),
    metrics: (await Promise.all(metrics)).join("\n"),
    refusals: refusals.join("\n"),
    traces: collector.requests.map(({ body }) => body).join("\n"),
  };
  expect(outputs.logs).toContain('"event":"request"');
  for (const [where, text] of Object.entries(outputs)) {
    expect({ where, found: CANARIES.filter((canary) => text.includes(canary)) }).toEqual({
      where,
      found: [],
    });
  }
}

async function expectNothingInRedis(): Promise<void> {
  await eventually(async () => {
    const dump = await dumpRedis(redis.url);
    expect(dump).toContain("{adrelay:0}");
    expect(CANARIES.filter((canary) => dump.includes(canary))).toEqual([]);
  }, 20_000);
}

test("calls that succeed leave no user's text behind", async () => {
  const id = await injected();
  expect((await acknowledge(id, { headers: { Prefer: "wait=20" } })).status).toBe(200);
  const repeated = await acknowledge(id);
  expect(repeated.status).toBe(200);
  expect(provider.posts.slice(before.posts).every(({ body }) => body.includes(EMAIL))).toBe(true);
  await expectNothingInRedis();
  await expectNoLeak();
});

test("no error answer repeats a text of the refused call", async () => {
  const id = await injected();
  await acknowledge(id);
  const calls: readonly [number, Promise<Answer>][] = [
    [400, send(INJECTION_PATH, `{"prompt": "${TEXT}`)],
    [400, send(ACKNOWLEDGE_PATH, `${TEXT} {`)],
    [400, send(ACKNOWLEDGE_PATH, TEXT, { headers: { "Content-Encoding": "gzip" } })],
    [413, send(INJECTION_PATH, JSON.stringify({ prompt: TEXT.repeat(500) }))],
    [413, send(ACKNOWLEDGE_PATH, JSON.stringify({ llm_response: TEXT.repeat(500) }))],
    [415, send(INJECTION_PATH, TEXT, { headers: { "Content-Type": `text/${PASTED_KEY}` } })],
    [415, send(INJECTION_PATH, TEXT, { headers: { "Content-Encoding": PASTED_KEY } })],
    [401, send(INJECTION_PATH, "{}", { headers: { "X-Service-API-Key": PASTED_KEY } })],
    [422, send(ACKNOWLEDGE_PATH, JSON.stringify([TEXT]))],
    [422, send(ACKNOWLEDGE_PATH, JSON.stringify({ ad_response_id: TEXT, llm_response: [TEXT] }))],
    [422, send(INJECTION_PATH, "{}", { headers: { "X-Adrelay-Timeout-Ms": CARD } })],
    [422, send(`${ACKNOWLEDGMENTS_PATH}${EMAIL}${QUERY}`, undefined)],
    [404, send(`/${EMAIL}/${CARD}${QUERY}`, undefined)],
    [422, send(`${ACKNOWLEDGMENTS_PATH}%E0%A4%A${CARD}`, undefined)],
    [405, send(INJECTION_PATH + QUERY, undefined, { method: "DELETE" })],
    [409, acknowledge(id, {}, `${TEXT} and more`)],
  ];
  const statuses = await Promise.all(calls.map(async ([, call]) => (await call).status));
  expect(statuses).toEqual(calls.map(([status]) => status));
  await becomes(id, "delivered");
  await expectNothingInRedis();
  await expectNoLeak();
});

/** An answer with the text in each place where a provider can put it. */
const echo = (status: number, code: string): Behaviour => ({
  kind: "answer",
  status,
  headers: {
    "Retry-After": `${CARD}, ${EMAIL}`,
    "X-Echo": TEXT.replaceAll(" ", "_"),
    "Content-Type": `text/${PASTED_KEY}`,
  },
  body: {
    type: TEXT,
    title: TEXT,
    detail: TEXT,
    code,
    ad_ack_id: TEXT,
    status: TEXT,
    errors: [TEXT],
    [TEXT]: 1,
  },
});

test("a text that a provider echoes in its errors reaches only the caller", async () => {
  const answers = [echo(422, TEXT), echo(422, CARD), echo(406, TEXT), echo(409, TEXT), echo(500, CARD)];
  const ids: string[] = [];
  for (const answer of answers) {
    const id = await injected();
    ids.push(id);
    provider.onAcknowledge((_post, count) => (count === 0 ? answer : acknowledged()));
    await acknowledge(id);
    await eventually(() => expect(provider.acknowledgmentsOf(id).length).toBeGreaterThan(0));
  }
  await becomes(ids[4] ?? "", "delivered");
  for (const answer of [echo(400, TEXT), echo(401, TEXT), echo(500, TEXT), echo(200, TEXT)]) {
    provider.onStart(() => answer);
    await send(INJECTION_PATH, JSON.stringify(INJECTION));
  }
  for (const id of ids.slice(0, 2)) {
    await becomes(id, "dead");
    await admin(`/acknowledgments/${id}`, OPERATOR_TOKEN);
    expect(await admin(`/acknowledgments/${id}/discard`, OPERATOR_TOKEN, { reason: "a test" })).toBe(200);
  }
  await expectNothingInRedis();
  await expectNoLeak();
});

test("late, broken and missing answers to injections leak no text", async () => {
  const limit = { headers: { "X-Adrelay-Timeout-Ms": "100" } };
  const odd: readonly Behaviour[] = [
    { kind: "late", delayMs: 400, answer: filled({ enhanced_prompt: TEXT, product_name: TEXT }) },
    { kind: "raw", status: 200, bytes: TEXT },
    { kind: "reset" },
    { kind: "drip" },
  ];
  for (const behaviour of odd) {
    provider.onStart(() => behaviour);
    const answer = await send(INJECTION_PATH, JSON.stringify(INJECTION), limit);
    expect(answer.headers.get("X-Adrelay-Fallback")).not.toBeNull();
  }
  await expectNothingInRedis();
  await expectNoLeak();
});

test("under retries, kills and replays only the queue has texts, until delivery", async () => {
  const behaviours: readonly Behaviour[] = [
    { kind: "hang" },
    { kind: "reset" },
    { kind: "raw", status: 200, bytes: TEXT },
  ];
  provider.onAcknowledge((_post, count) => behaviours[count] ?? acknowledged());
  const retried = await injected();
  await acknowledge(retried);
  await eventually(() => expect(provider.acknowledgmentsOf(retried).length).toBeGreaterThanOrEqual(1));
  await stack.crash("worker");
  apps.push(await stack.start("worker"));
  await becomes(retried, "delivered");
  provider.onAcknowledge(() => echo(422, TEXT));
  const dead = await injected();
  await acknowledge(dead);
  await becomes(dead, "dead");
  expect(await dumpRedis(redis.url)).toContain(EMAIL);
  await expectNoLeak();
  provider.onAcknowledge(() => acknowledged());
  expect(await admin(`/acknowledgments/${dead}/replay`, OPERATOR_TOKEN, {})).toBe(200);
  await becomes(dead, "delivered");
  await expectNothingInRedis();
  await expectNoLeak();
});

test.each([
  ["OOM", ["CONFIG", "SET", "maxmemory", "1"], ["CONFIG", "SET", "maxmemory", "0"]],
  ["READONLY", ["REPLICAOF", "127.0.0.1", "1"], ["REPLICAOF", "NO", "ONE"]],
] as const)(
  "a refusal of Redis with %s is logged without the refused text",
  async (_name, breakCommand, repairCommand) => {
    const operator = new Redis(redis.url);
    const id = await injected();
    const queued = await injected();
    provider.onAcknowledge((_post, count) => (count === 0 ? { kind: "hang" } : acknowledged()));
    await acknowledge(queued);
    await eventually(() => expect(provider.acknowledgmentsOf(queued).length).toBeGreaterThanOrEqual(1));
    await operator.call(breakCommand[0], ...breakCommand.slice(1));
    const refused = await acknowledgeOnce(id);
    expect(refused.status).toBe(503);
    await send(INJECTION_PATH, JSON.stringify(INJECTION));
    await operator.call(repairCommand[0], ...repairCommand.slice(1));
    operator.disconnect();
    expect((await acknowledge(id)).status).toBeLessThan(300);
    await becomes(id, "delivered");
    await becomes(queued, "delivered");
    // A gateway that has seen already that Redis is full doesn't ask it.
    if (refused.body["code"] !== "storage_full") {
      expect(intakeFailures().length).toBeGreaterThan(before.failures);
    }
    await expectNothingInRedis();
    await expectNoLeak();
  },
);

test("no answer repeats an operator's wrong token or odd parameters", async () => {
  await send(INJECTION_PATH, "{}");
  const statuses = await Promise.all([
    admin(`/stats${QUERY}`, PASTED_KEY),
    admin(`/acknowledgments/${EMAIL}${QUERY}`, OPERATOR_TOKEN),
    admin(`/acknowledgments?state=${CARD}&publisher=${EMAIL}&cursor=${PASTED_KEY}`, OPERATOR_TOKEN),
    admin(`/audit?cursor=${CARD}&${PASTED_KEY}=1`, OPERATOR_TOKEN),
    admin("/replays", OPERATOR_TOKEN, { publisher: EMAIL, reason: CARD, since: TEXT, [PASTED_KEY]: CARD }),
    admin(`/replays/${CARD}/cancel`, OPERATOR_TOKEN, { [TEXT]: TEXT }),
    admin(`/acknowledgments/${unknownId()}/discard`, OPERATOR_TOKEN, { reason: "x", [CARD]: TEXT }),
    admin(`/${EMAIL}`, OPERATOR_TOKEN),
    admin("/stats", OPERATOR_TOKEN),
  ]);
  expect(statuses.slice(0, -1).every((status) => status >= 400 && status < 500)).toBe(true);
  expect(statuses.at(-1)).toBe(200);
  await expectNothingInRedis();
  await expectNoLeak();
});

test("the shipped ad server leaks no text either", async () => {
  const adServer = await startApp("ad-server", {
    AD_SERVER_PORT: "0",
    AD_SERVER_API_KEYS: PROVIDER_KEY,
    REDIS_URL: redis.url,
    LOG_LEVEL: "trace",
  });
  const url = `http://127.0.0.1:${adServer.listening["port"]}`;
  apps.push(adServer);
  const direct = relayCaller(url, PROVIDER_KEY);
  await injected();
  const options = { headers: ODD_HEADERS };
  const answer = await direct.inject(options, INJECTION);
  expect(answer.status).toBeLessThan(300);
  const bodies = [
    INJECTION,
    { ...INJECTION, request_context: TEXT, optional_context: { [CARD]: 1, age: TEXT } },
    [TEXT],
  ];
  for (const body of [...bodies.map((one) => JSON.stringify(one)), TEXT]) {
    await direct.send(INJECTION_PATH + QUERY, body, options).then(keepRefusal);
    await direct.send(ACKNOWLEDGE_PATH + QUERY, body, options).then(keepRefusal);
  }
  keepRefusal(await direct.acknowledge(answer.body["ad_response_id"], TEXT, options));
  expect(refusals.length).toBeGreaterThan(8);
  await expectNoLeak();
  await adServer.stop();
});

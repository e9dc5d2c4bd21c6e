/**
 * The proxy as a process while Redis is away, read-only or full, in each phase of a call; while the ad service is slow; and while
 * its publishers change. It guards against an answer that is changed or waits, an ad that nobody acknowledges or that is
 * acknowledged twice, and a turn that stays open.
 */
import { copyFileSync } from "node:fs";
import type { ServerResponse } from "node:http";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  acknowledged,
  callerKeyOf,
  eventually,
  fetchMetrics,
  filled,
  type PublishersFile,
  type ScriptedProvider,
  type SocketProxy,
  startApp,
  startScriptedProvider,
  startSocketProxy,
  sumOf,
  writePublishersFile,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, afterEach, beforeAll, describe, expect, test } from "vitest";
import { bodyOf, CHAT, chatStream, type Model, startModel, write } from "./http-fixture.ts";

let redis: TestRedis;
let operator: Redis;
/** Between the proxy and Redis. */
let way: SocketProxy;
let provider: ScriptedProvider;
let model: Model;
let files: { readonly both: PublishersFile; readonly one: PublishersFile };
let worker: AppProcess;
let proxy: AppProcess;
/** Answers that have begun, in order. */
const answers: ServerResponse[] = [];

const account = () => ({ providerUrl: provider.url, keyEnv: "KEY" });
const portOf = (url: string) => Number(new URL(url).port);

beforeAll(async () => {
  [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  operator = new Redis(redis.url);
  way = await startSocketProxy(portOf(redis.url));
  provider.onStart(() => filled({ enhanced_prompt: "hello <ad>" }));
  provider.onAcknowledge(() => acknowledged());
  model = await startModel(async (request, response) => {
    await bodyOf(request);
    response.writeHead(200, { "Content-Type": "text/event-stream" }).flushHeaders();
    answers.push(response);
  });
  files = {
    both: writePublishersFile([
      { id: "acme", ...account() },
      { id: "leaving", ...account() },
    ]),
    one: writePublishersFile([{ id: "acme", ...account() }]),
  };
  const common = { PUBLISHERS_FILE: files.both.path, KEY: "key-at-provider", SHUTDOWN_TIMEOUT_MS: "5000" };
  worker = await startApp("worker", {
    ...common,
    REDIS_URL: redis.url,
    WORKER_OPS_PORT: "0",
    SWEEP_INTERVAL_MS: "100",
    RETRY_SCHEDULE: "100ms",
  });
  proxy = await startProxy(common);
});
afterAll(async () => {
  await proxy.stop();
  await worker.stop();
  await model.stop();
  await way.close();
  operator.disconnect();
  await Promise.all([provider.close(), redis.dispose()]);
  files.both.remove();
  files.one.remove();
});

function startProxy(env: Readonly<Record<string, string>>): Promise<AppProcess> {
  return startApp("proxy", {
    REDIS_URL: redis.url.replace(String(portOf(redis.url)), String(way.port)),
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    OPENAI_BASE_URL: `${model.url}/v1`,
    PROXY_DRAIN_MS: "0",
    PROXY_INJECTION_TIMEOUT_MS: "3000",
    ...env,
  });
}

async function call(publisher = "acme", target = proxy) {
  const before = answers.length;
  const answer = fetch(`http://127.0.0.1:${target.listening["port"]}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "X-Service-API-Key": callerKeyOf(publisher),
      "X-Adrelay-Session-Id": crypto.randomUUID(),
      "X-Adrelay-User-Agent": "agent",
      "X-Adrelay-User-IP": "203.0.113.7",
    },
    body: CHAT,
  });
  const response = await eventually(() => answers[before] ?? expect.fail("no call has come"));
  const { headers, body } = await answer;
  return {
    ad: headers.get("X-Adrelay-Ad") ?? "",
    id: headers.get("X-Adrelay-Ad-Response-Id") ?? "",
    text: new Response(body).text(),
    response,
  };
}

const EVENTS = chatStream(["Try ", "Fizz."]);
const WHOLE = EVENTS.join("");

/** Sends the answer's first event. */
const begin = ({ response }: Awaited<ReturnType<typeof call>>) => write(response, EVENTS[0] ?? "");

const acknowledgedTexts = (id: string) =>
  provider.acknowledgmentsOf(id).map(({ fields }) => fields["llm_response"]);

/** That Redis refuses writes is an error for operators. All other ones are bugs. */
function expectNoBug(): void {
  const isError = (level: unknown) => level === "error" || level === "fatal";
  const errors = proxy.logs.filter(({ level }) => isError(level)).map(({ event }) => event);
  expect(errors.filter((event) => event !== "redis_refuses_writes")).toEqual([]);
}

async function expectBalance(): Promise<void> {
  await eventually(async () => {
    const samples = await fetchMetrics(`http://127.0.0.1:${worker.listening["ops_port"]}`);
    expect(samples.get("adrelay_books_imbalance")).toBe(0);
    expect(sumOf(samples, "adrelay_turns_open")).toBe(0);
    expect(sumOf(samples, "adrelay_acknowledgments_missed_total")).toBe(0);
  }, 60_000);
  expectNoBug();
  expect(proxy.stderr()).toBe("");
  await eventually(async () => expect(await readiness()).toEqual([200, undefined]));
}

/** The status of the proxy's readiness, and what it says of Redis. */
async function readiness(): Promise<[status: number, warning: unknown]> {
  const response = await fetch(`http://127.0.0.1:${proxy.listening["ops_port"]}/readyz`);
  return [response.status, Object(await response.json()).warnings?.redis];
}

const FAULTS = {
  away: {
    cause: async () => {
      way.setTarget(1);
      way.cut();
    },
    repair: async () => {
      way.setTarget(portOf(redis.url));
    },
  },
  "read-only": {
    cause: () => operator.call("REPLICAOF", "127.0.0.1", "1"),
    repair: () => operator.call("REPLICAOF", "NO", "ONE"),
  },
  full: {
    cause: () => operator.config("SET", "maxmemory", "1"),
    repair: () => operator.config("SET", "maxmemory", "0"),
  },
} as const;

describe.each(["away", "read-only", "full"] as const)("while Redis is %s", (name) => {
  const { cause, repair } = FAULTS[name];
  afterEach(repair);

  test("from before a call on, its answer passes without an ad", async () => {
    await cause();
    const one = await call();
    one.response.end(WHOLE);
    expect(await one.text).toBe(WHOLE);
    expect(one.ad).toMatch(/^(fallback|skipped); reason=/);
    // A balancer must go on sending calls.
    const says = [200, expect.stringContaining("calls of models go on")];
    await eventually(async () => expect(await readiness()).toEqual(says));
    await repair();
    await expectBalance();
  });

  test("from the ad call on, the ad isn't used, and is missed by nobody", async () => {
    const isAsked = Promise.withResolvers<void>();
    provider.onStart(() => {
      isAsked.resolve();
      return { kind: "late", delayMs: 1200, answer: filled({ enhanced_prompt: "hello <ad>" }) };
    });
    const calling = call();
    await isAsked.promise;
    await cause();
    const one = await calling;
    provider.onStart(() => filled({ enhanced_prompt: "hello <ad>" }));
    one.response.end(WHOLE);
    expect(await one.text).toBe(WHOLE);
    expect(one.ad).toMatch(/^fallback; reason=/);
    await repair();
    await expectBalance();
  });

  test("within an answer, all of its text is acknowledged once", async () => {
    const one = await call();
    expect(one.ad).toBe("injected");
    await begin(one);
    await cause();
    one.response.write(EVENTS[1]);
    await repair();
    one.response.end(EVENTS.slice(2).join(""));
    expect(await one.text).toBe(WHOLE);
    await eventually(() => expect(acknowledgedTexts(one.id)).toEqual(["Try Fizz."]));
    await expectBalance();
  });

  test("at the end of an answer, the caller waits for nothing, and all is acknowledged once", async () => {
    const one = await call();
    await begin(one);
    await cause();
    one.response.end(EVENTS.slice(1).join(""));
    const endedAtMs = performance.now();
    expect(await one.text).toBe(WHOLE);
    expect(performance.now() - endedAtMs).toBeLessThan(1000);
    await repair();
    await eventually(() => expect(acknowledgedTexts(one.id)).toEqual(["Try Fizz."]));
    await expectBalance();
  });
});

test("a slow ad service costs its time limit once, and the late ad is booked as abandoned", async () => {
  provider.onStart(() => ({ kind: "late", delayMs: 4000, answer: filled() }));
  const startedAtMs = performance.now();
  const one = await call();
  provider.onStart(() => filled({ enhanced_prompt: "hello <ad>" }));
  expect(one.ad).toBe("fallback; reason=timeout");
  expect(performance.now() - startedAtMs).toBeLessThan(6000);
  one.response.end(WHOLE);
  expect(await one.text).toBe(WHOLE);
  await expectBalance();
});

test.each([
  ["a list of addresses", { "X-Adrelay-User-IP": "203.0.113.7, 10.0.0.1" }],
  ["a country that is none", { "X-Adrelay-Country": "XX" }],
  ["an age that is none", { "X-Adrelay-Age": "old" }],
  ["a city in Latin-1", { "X-Adrelay-City": "S\u00e3o Paulo" }],
  ["a session of 10,000 characters", { "X-Adrelay-Session-Id": "s".repeat(10_000) }],
])("a context with %s passes, whatever the ad service says of it", async (_, headers) => {
  provider.onStart(() => ({ kind: "answer", status: 422, body: { code: "invalid" } }));
  const before = answers.length;
  const answer = fetch(`http://127.0.0.1:${proxy.listening["port"]}/v1/chat/completions`, {
    method: "POST",
    headers: {
      "X-Service-API-Key": callerKeyOf("acme"),
      "X-Adrelay-Session-Id": "s",
      "X-Adrelay-User-Agent": "agent",
      "X-Adrelay-User-IP": "203.0.113.7",
      ...headers,
    },
    body: CHAT,
  });
  (await eventually(() => answers[before] ?? expect.fail("no call has come"))).end(WHOLE);
  const { headers: got, body } = await answer;
  expect(got.get("X-Adrelay-Ad")).toBe("fallback; reason=request_refused");
  expect(await new Response(body).text()).toBe(WHOLE);
  provider.onStart(() => filled({ enhanced_prompt: "hello <ad>" }));
});

test("a publisher that is removed within an answer is acknowledged, and its next call refused", async () => {
  const second = await startProxy({ PUBLISHERS_FILE: files.one.path, KEY: "key-at-provider" });
  const unknown = await fetch(`http://127.0.0.1:${second.listening["port"]}/v1/models`, {
    headers: { "X-Service-API-Key": callerKeyOf("leaving") },
  });
  expect(unknown.status).toBe(401);
  const one = await call("leaving");
  expect(one.ad).toBe("injected");
  await begin(one);
  copyFileSync(files.one.path, files.both.path);
  proxy.kill("SIGHUP");
  const probe = () =>
    fetch(`http://127.0.0.1:${proxy.listening["port"]}/v1/messages`, {
      method: "POST",
      headers: { "X-Service-API-Key": callerKeyOf("leaving") },
    });
  await eventually(async () => expect((await probe()).status).toBe(401));
  one.response.end(EVENTS.slice(1).join(""));
  expect(await one.text).toBe(WHOLE);
  await eventually(async () => {
    const samples = await fetchMetrics(`http://127.0.0.1:${worker.listening["ops_port"]}`);
    expect(sumOf(samples, "adrelay_turns_open")).toBe(0);
    expect(samples.get("adrelay_books_imbalance")).toBe(0);
  });
  expectNoBug();
  await second.stop();
});

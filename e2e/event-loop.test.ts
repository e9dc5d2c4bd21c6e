/**
 * One body must not stop a process for all others. Each test sends a body to a process that reports how long one turn of
 * its event loop computed.
 */
import { fileURLToPath } from "node:url";
import { ACKNOWLEDGE_PATH, INJECTION_PATH } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppName,
  type AppProcess,
  type DemoModel,
  eventually,
  type RelayCaller,
  relayCaller,
  type ScriptedProvider,
  startApp,
  startDemoModel,
  startScriptedProvider,
  TEST_API_KEY,
  TEST_PROVIDER_KEY,
  unknownId,
} from "@adrelay/testkit";
import { afterAll, beforeAll, describe, expect, test } from "vitest";

const PRELOAD = fileURLToPath(new URL("report-loop-delay.ts", import.meta.url));
/** Five times what is asked of a core that does nothing else: here a slow one is shared. The faults that this guards against took 450 ms. */
const DELAY_MAX_MS = 250;
/**
 * The first call of a kind compiles code, and any call can meet a full garbage collection. So most calls count: once so many were
 * quick, no more are made.
 */
const TRIES = 7;
const QUICK_TRIES = 4;
const LIMIT_BYTES = 1_048_576;

const shortMembers = (count: number) =>
  `{${Array.from({ length: count }, (_, at) => `"${at.toString(36)}":1`).join(",")}}`;
const acknowledgmentOf = (text: string) => `{"ad_response_id":"${unknownId()}","llm_response":"${text}"}`;

const BODIES = [
  ["open brackets", "[".repeat(LIMIT_BYTES)],
  ["objects in one another", `${'{"a":'.repeat(170_000)}1${"}".repeat(170_000)}`],
  ["short members", shortMembers(100_000)],
  ["short members below a known one", `{"prompt":"x","request_context":${shortMembers(90_000)}}`],
  ["short members, just few enough", shortMembers(20_000)],
  ["empty objects", `{"a":[${"{},".repeat(300_000)}1]}`],
  ["quotes in a text", acknowledgmentOf('\\"'.repeat(1_000_000))],
  ["escaped Chinese characters", acknowledgmentOf("\\u4e2d".repeat(349_000))],
  ["escaped Arabic characters", acknowledgmentOf("\\u0639".repeat(500_000))],
  ["escaped control characters", acknowledgmentOf("\\u0001".repeat(1_048_400))],
  ["blanks", `{${" ".repeat(LIMIT_BYTES - 2)}}`],
] as const;

let redis: TestRedis;
let provider: ScriptedProvider;
let model: DemoModel;
const apps = new Map<AppName, AppProcess>();

beforeAll(async () => {
  const records = { DEMO_MODEL_RECORDS: "0" };
  [redis, provider, model] = await Promise.all([
    startTestRedis(),
    startScriptedProvider(),
    startDemoModel(records),
  ]);
  const env = {
    REDIS_URL: redis.url,
    PROVIDER_URL: provider.url,
    API_KEYS: TEST_API_KEY,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    AD_SERVER_API_KEYS: TEST_API_KEY,
    GATEWAY_PORT: "0",
    QUOTA_BYTES_PER_SECOND: "off",
    GATEWAY_OPS_PORT: "0",
    AD_SERVER_PORT: "0",
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    PROXY_DRAIN_MS: "0",
    PROXY_INJECTION_TIMEOUT_MS: "10000",
    OPENAI_BASE_URL: model.openAiUrl,
    ANTHROPIC_BASE_URL: model.url,
  };
  for (const name of ["gateway", "ad-server", "proxy"] as const) {
    apps.set(name, await startApp(name, env, { nodeArgs: ["--import", PRELOAD] }));
  }
});
afterAll(async () => {
  await Promise.all([...apps.values()].map((app) => app.stop()));
  await Promise.all([provider.close(), model.stop()]);
  await redis.dispose();
});

/** The longest delay of the event loop during a call, by the reports of the process. */
async function delayOf(app: AppProcess, call: () => Promise<unknown>): Promise<number> {
  const delays = () =>
    app.logs.filter(({ event }) => event === "loop_delay").map(({ max_ms }) => Number(max_ms));
  const before = delays().length;
  await call();
  const answered = delays().length;
  // The first report may have begun before the answer.
  await eventually(() => expect(delays().length).toBeGreaterThan(answered + 1));
  return Math.max(...delays().slice(before));
}

/** Fails if the median of all delays would not be below the limit. */
async function expectShortDelays(
  app: AppProcess,
  maxMs: number,
  call: () => Promise<unknown>,
): Promise<void> {
  const delays: number[] = [];
  const quick = () => delays.filter((delayMs) => delayMs < maxMs);
  while (quick().length < QUICK_TRIES && delays.length < TRIES) {
    delays.push(await delayOf(app, call));
  }
  expect(quick().length, `delays of ${delays.join(", ")} ms`).toBe(QUICK_TRIES);
}

const callerOf = (app: AppProcess): RelayCaller => relayCaller(`http://127.0.0.1:${app.listening["port"]}`);

describe.each(["gateway", "ad-server"] as const)("the event loop of the %s", (name) => {
  test.each(BODIES)("is not stopped by a body of many %s", async (_what, body) => {
    const app = apps.get(name) ?? expect.fail("the app has not started");
    const headers = { Prefer: "respond-async" };
    for (const path of [INJECTION_PATH, ACKNOWLEDGE_PATH]) {
      await expectShortDelays(app, DELAY_MAX_MS, () => callerOf(app).send(path, body, { headers }));
    }
  });
});

/** The longest body that may get an ad. */
const EDIT_LIMIT_BYTES = 8_388_608;
const QUESTION = '{"role":"user","content":"Which shoes are good?"}';
const chatOf = (messages: string) => `{"model":"demo","messages":[${messages}]}`;
/** A call of nearly that length, with as many of these pieces before the question as fit. */
const longChat = (before: string, piece: string, after: string) => {
  const room = EDIT_LIMIT_BYTES - chatOf(`${before}${after},${QUESTION}`).length;
  return chatOf(`${before}${piece.repeat(Math.floor(room / piece.length))}${after},${QUESTION}`);
};
const earlierText = (piece: string) => longChat('{"role":"user","content":"', piece, '"}');
const longQuestion = (piece: string) => {
  const room = EDIT_LIMIT_BYTES - chatOf('{"role":"user","content":""}').length;
  return chatOf(`{"role":"user","content":"${piece.repeat(Math.floor(room / piece.length))}"}`);
};
const message = `${QUESTION},`;

/** Three times what is promised, for slow cores. */
const MODEL_CALL_DELAY_MAX_MS = 150;
const MODEL_CALLS = [
  ["plain text", earlierText("x"), "injected"],
  ["escaped Chinese characters", earlierText("\\u4e2d"), "injected"],
  ["quotes in a text", earlierText('\\"'), "injected"],
  ["line breaks in a text", earlierText("word\\n"), "injected"],
  ["plain text in the question", longQuestion("x"), "injected"],
  ["escaped Chinese characters in the question", longQuestion("\\u4e2d"), "injected"],
  ["short messages", chatOf(message.repeat(30_000) + QUESTION), "injected"],
  ["numbers, too many to look at", longChat('{"role":"user","content":"a","n":[', "1,", "1]}"), "skipped"],
  ["open brackets", "[".repeat(EDIT_LIMIT_BYTES), "skipped"],
] as const;

const USER = {
  "X-Service-API-Key": TEST_API_KEY,
  authorization: "Bearer key-of-the-model",
  "content-type": "application/json",
  "X-Adrelay-Session-Id": "session",
  "X-Adrelay-User-Agent": "agent",
  "X-Adrelay-User-IP": "203.0.113.7",
};

describe("the event loop of the proxy", () => {
  test.each(MODEL_CALLS)("is not stopped by a long call of %s", async (_what, body, expected) => {
    const app = apps.get("proxy") ?? expect.fail("the app has not started");
    const states: string[] = [];
    await expectShortDelays(app, MODEL_CALL_DELAY_MAX_MS, async () => {
      const url = `http://127.0.0.1:${app.listening["port"]}/v1/chat/completions`;
      const answer = await fetch(url, { method: "POST", headers: USER, body });
      await answer.text();
      states.push(answer.headers.get("x-adrelay-ad")?.split(";")[0] ?? "none");
    });
    expect(new Set(states)).toEqual(new Set([expected]));
  });
});

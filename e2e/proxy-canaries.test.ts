/**
 * Guards users' texts and secrets on their way through the model proxy (invariant 6). Canaries are put wherever a caller, a model
 * or an ad service can put them, with and without faults. No log line, metric, error answer or trace may contain one, and Redis
 * only while a turn waits or its acknowledgment is queued.
 */
import { once } from "node:events";
import { createServer, type RequestListener, type Server } from "node:http";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppProcess,
  acknowledged,
  dumpRedis,
  eventually,
  filled,
  type OtlpCollector,
  type ScriptedProvider,
  startApp,
  startOtlpCollector,
  startScriptedProvider,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterEach, beforeEach, expect, test } from "vitest";

const EMAIL = "canary.jane@example.net";
const CARD = "4111111111111111";
const USER_IP = "198.51.100.77";
const TEXT = `Write to ${EMAIL}, pay with ${CARD}.`;
const ANSWER = "canary-of-the-model says Velmora";
const TOOL_ID = "call_canary_0123456789";
const CALLER_KEY = "canary-key-of-a-caller";
const PROVIDER_KEY = "canary-key-at-the-provider";
const MODEL_KEY = "sk-canary-of-the-model-0123456789";
const USER_TEXTS = [EMAIL, CARD, USER_IP, "canary-of-the-model", TOOL_ID, "canary-agent", "canary-session"];
const CANARIES = [...USER_TEXTS, CALLER_KEY, PROVIDER_KEY, MODEL_KEY];
const QUERY = `?key=${MODEL_KEY}&mail=${EMAIL}`;
/** A lease, the time for which Redis must have answered, and a slow machine. */
const SWEEP_PATIENCE_MS = 60_000;

let redis: TestRedis;
let provider: ScriptedProvider;
let collector: OtlpCollector;
let model: { url: string; server: Server; answer: RequestListener };
let proxy: AppProcess;
let apps: AppProcess[];
let refusals: string[];

beforeEach(async () => {
  [redis, provider, collector] = await Promise.all([
    startTestRedis(),
    startScriptedProvider(),
    startOtlpCollector(),
  ]);
  provider.onStart(() => filled({ enhanced_prompt: `${TEXT} <ad>`, product_name: "Velmora" }));
  provider.onAcknowledge(() => acknowledged());
  model = await startModel();
  const worker = await startApp("worker", { ...common(), WORKER_OPS_PORT: "0", SWEEP_INTERVAL_MS: "100" });
  apps = [worker];
  refusals = [];
  proxy = await startProxy();
});
afterEach(async () => {
  await Promise.all(apps.map((app) => app.stop()));
  model.server.closeAllConnections();
  model.server.close();
  await Promise.all([provider.close(), collector.close()]);
  await redis.dispose();
});

const common = () => ({
  LOG_LEVEL: "trace",
  REDIS_URL: redis.url,
  PROVIDER_URL: provider.url,
  PROVIDER_API_KEY: PROVIDER_KEY,
  API_KEYS: CALLER_KEY,
  SHUTDOWN_TIMEOUT_MS: "5000",
  OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
  OTEL_BSP_SCHEDULE_DELAY: "20",
});

async function startProxy(): Promise<AppProcess> {
  const app = await startApp("proxy", {
    ...common(),
    PROXY_PORT: "0",
    PROXY_OPS_PORT: "0",
    OPENAI_BASE_URL: `${model.url}/v1`,
    ANTHROPIC_BASE_URL: model.url,
    PROXY_DRAIN_MS: "0",
    PROXY_INJECTION_TIMEOUT_MS: "5000",
    PROXY_IDLE_TIMEOUT_MS: "2000",
  });
  apps.push(app);
  return app;
}

async function startModel(): Promise<typeof model> {
  const started = { url: "", server: createServer(), answer: streamed() };
  started.server.on("request", (request, response) => {
    request.resume().once("end", () => started.answer(request, response));
  });
  started.server.listen(0, "127.0.0.1");
  await once(started.server, "listening");
  started.url = `http://127.0.0.1:${Object(started.server.address()).port}`;
  return started;
}

const event = (delta: object, finish: string | null = null) =>
  `data: ${JSON.stringify({ choices: [{ index: 0, delta, finish_reason: finish }] })}\n\n`;

/** Answers a stream with the canary, and its end if it is given. */
function streamed(...ends: string[]): RequestListener {
  return (_, response) => {
    response.writeHead(200, { "content-type": "text/event-stream", "x-echo": MODEL_KEY });
    response.write(event({ content: ANSWER }));
    if (ends.length > 0) {
      response.end(ends.join(""));
    }
  };
}
const COMPLETE = [event({}, "stop"), "data: [DONE]\n\n"];
const TOOL_CALL = { index: 0, id: TOOL_ID, type: "function", function: { name: "look", arguments: CARD } };

const urlOf = (app: AppProcess) => `http://127.0.0.1:${app.listening["port"]}`;

interface CallOptions {
  readonly path?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly messages?: readonly object[];
  readonly signal?: AbortSignal;
}

function send({ path, headers, messages, signal }: CallOptions = {}): Promise<Response> {
  return fetch(`${urlOf(proxy)}${path ?? "/v1/chat/completions"}${QUERY}`, {
    method: "POST",
    headers: {
      "content-type": "application/json",
      "X-Service-API-Key": CALLER_KEY,
      authorization: `Bearer ${MODEL_KEY}`,
      "x-api-key": MODEL_KEY,
      "X-Adrelay-Session-Id": `canary-session ${CARD}`,
      "X-Adrelay-User-Agent": "canary-agent",
      "X-Adrelay-User-IP": USER_IP,
      "X-Adrelay-City": EMAIL,
      "X-Request-Id": `id ${EMAIL}`,
      cookie: `card=${CARD}`,
      baggage: `card=${CARD}`,
      tracestate: `card=${CARD}`,
      ...headers,
    },
    body: JSON.stringify({
      stream: true,
      tools: [{ type: "function", function: { name: CARD } }],
      messages: messages ?? [{ role: "user", content: TEXT }],
    }),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function sendWhole(options?: CallOptions): Promise<{ status: number; id: string; text: string }> {
  const answer = await send(options);
  const text = await answer.text().catch(() => "");
  if (text.includes("Adrelay: ") || text.includes("not_found")) {
    refusals.push(text, JSON.stringify([...answer.headers]));
  }
  return { status: answer.status, id: answer.headers.get("X-Adrelay-Ad-Response-Id") ?? "", text };
}

/** Fails if a log, metric, error answer or trace contains a canary. */
async function expectNoLeak(): Promise<void> {
  const running = apps.filter((app) => app.listening["ops_port"] !== undefined && !gone.has(app));
  const pages = running.flatMap((app) =>
    ["/metrics", "/readyz"].map(async (path) =>
      (await fetch(`http://127.0.0.1:${app.listening["ops_port"]}${path}`)).text(),
    ),
  );
  await eventually(() => expect(collector.spans.length).toBeGreaterThan(0));
  const outputs = {
    logs: apps.map(({ logs }) => JSON.stringify(logs)).join("\n"),
    stderr: apps.map((app) => app.stderr()).join("\n"),
    metrics: (await Promise.all(pages)).join("\n"),
    refusals: refusals.join("\n"),
    traces: collector.requests.map(({ body }) => body).join("\n"),
  };
  expect(outputs.logs).toContain('"event":"listening"');
  expect(outputs.metrics).toContain("adrelay_turns_total");
  for (const [where, text] of Object.entries(outputs)) {
    expect({ where, found: CANARIES.filter((canary) => text.includes(canary)) }).toEqual({
      where,
      found: [],
    });
  }
}
const gone = new WeakSet<AppProcess>();

/** No text in any key or its name; and of turns only pointers to their ids. */
async function expectNothingInRedis(): Promise<void> {
  await eventually(async () => {
    const dump = await dumpRedis(redis.url);
    expect(dump).toContain("{adrelay:0}");
    expect(CANARIES.filter((canary) => dump.includes(canary))).toEqual([]);
    expect(dump).not.toMatch(/:awaiting:(turn|text|prompt):/);
  });
}

const delivered = (id: string, text: string) =>
  eventually(
    () => expect(provider.acknowledgmentsOf(id).map(({ fields }) => fields["llm_response"])).toEqual([text]),
    SWEEP_PATIENCE_MS,
  );

test("turns that end, wait, and are retried leave no text behind", async () => {
  model.answer = streamed(...COMPLETE);
  const plain = await sendWhole();
  expect(plain.text).toContain(ANSWER);
  await delivered(plain.id, ANSWER);
  await expectNothingInRedis();
  model.answer = streamed(event({ tool_calls: [TOOL_CALL] }), event({}, "tool_calls"));
  const first = await sendWhole();
  await eventually(async () => expect(await dumpRedis(redis.url)).toContain(EMAIL));
  await expectNoLeak();
  model.answer = streamed(...COMPLETE);
  const next = await sendWhole({
    messages: [
      { role: "user", content: TEXT },
      { role: "assistant", tool_calls: [TOOL_CALL] },
      { role: "tool", tool_call_id: TOOL_ID, content: CARD },
    ],
  });
  expect(next.id).toBe(first.id);
  await delivered(first.id, `${ANSWER}\n\n${ANSWER}`);
  model.answer = (_, response) => response.writeHead(529).end(TEXT);
  const failed = await sendWhole();
  expect(failed).toMatchObject({ status: 529, text: TEXT });
  model.answer = streamed(...COMPLETE);
  const retried = await eventually(async () => {
    const { id } = await sendWhole();
    expect(id).toBe(failed.id);
    return id;
  });
  await delivered(retried, ANSWER);
  await expectNothingInRedis();
  await expectNoLeak();
});

test("no error of the proxy repeats a text or a key", async () => {
  const refused: Record<string, unknown> = {};
  const note = async (name: string, options: CallOptions) => {
    refused[name] = (await sendWhole(options)).status;
  };
  await note("key", { headers: { "X-Service-API-Key": PROVIDER_KEY } });
  await note("path", { path: `/${EMAIL}/${CARD}` });
  model.answer = (request) => request.socket.destroy();
  await note("lost", {});
  model.answer = () => {};
  await note("idle", {});
  model.answer = (request) => request.socket.end(`HTTP/1.1 2000 ${TEXT}\r\nX: ${TEXT}\r\n\r\n`);
  await note("garbage", { path: "/v1/messages" });
  model.answer = (_, response) => response.writeHead(422).end(TEXT);
  await note("refused", { path: "/v1/responses" });
  model.answer = streamed();
  const cut = new AbortController();
  const answer = await send({ signal: cut.signal });
  await answer.body?.getReader().read();
  cut.abort();
  model.answer = (_, response) =>
    response
      .writeHead(200, { "content-type": "text/event-stream" })
      .end(`${TEXT}: ${CARD}\n\ndata: {${TEXT}\n\n`);
  await note("no event", {});
  model.answer = (_, response) =>
    response.writeHead(200, { "content-type": "text/event-stream", "content-encoding": "gzip" }).end(TEXT);
  await note("no gzip", {}).catch(() => {});
  expect(refused).toMatchObject({ key: 401, path: 404, lost: 502, idle: 504, garbage: 502, refused: 422 });
  expect(refusals.length).toBeGreaterThan(8);
  await expectNoLeak();
});

test(
  "a proxy that is killed within an answer leaves no text once the sweep has settled it",
  async () => {
    model.answer = streamed();
    const answer = await send();
    const id = answer.headers.get("X-Adrelay-Ad-Response-Id") ?? "";
    await answer.body?.getReader().read();
    await eventually(async () => expect(await dumpRedis(redis.url)).toContain("canary-of-the-model"));
    proxy.kill("SIGKILL");
    await proxy.exited;
    gone.add(proxy);
    await delivered(id, ANSWER);
    await expectNothingInRedis();
    await expectNoLeak();
  },
  2 * SWEEP_PATIENCE_MS,
);

test(
  "a Redis that refuses writes is reported without the refused text",
  async () => {
    const operator = new Redis(redis.url);
    model.answer = streamed();
    const answer = await send();
    const id = answer.headers.get("X-Adrelay-Ad-Response-Id") ?? "";
    await operator.call("REPLICAOF", "127.0.0.1", "1");
    await eventually(() =>
      expect(proxy.logs).toContainEqual(expect.objectContaining({ event: "turn_write_failed" })),
    );
    const during = await sendWhole();
    expect(during.id).toBe("");
    await operator.call("REPLICAOF", "NO", "ONE");
    operator.disconnect();
    await answer.text().catch(() => "");
    await delivered(id, ANSWER);
    await expectNothingInRedis();
    await expectNoLeak();
  },
  SWEEP_PATIENCE_MS,
);

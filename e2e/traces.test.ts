/** Traces from a caller through gateway, queue and worker to the provider, as an OTLP collector receives them. */
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  acknowledged,
  type CollectedSpan,
  eventually,
  type OtlpCollector,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startOtlpCollector,
  startRelayStack,
  startScriptedProvider,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, test } from "vitest";

const TRACE = "0af7651916cd43dd8448eb211c80319c";
const CALLERS_SPAN = "b7ad6b7169203331";
const TRACEPARENT = `00-${TRACE}-${CALLERS_SPAN}-01`;
const ASYNC = { Prefer: "respond-async" };

let redis: TestRedis;
let provider: ScriptedProvider;
let collector: OtlpCollector;
let stack: RelayStack | undefined;

beforeEach(async () => {
  [redis, provider, collector] = await Promise.all([
    startTestRedis(),
    startScriptedProvider(),
    startOtlpCollector(),
  ]);
});
afterEach(async () => {
  await stack?.stop();
  await Promise.all([provider.close(), collector.close()]);
  await redis.dispose();
});

interface Relay {
  readonly running: RelayStack;
  readonly caller: RelayCaller;
}

async function startRelay(env: Record<string, string> = {}): Promise<Relay> {
  // Long, so that a busy machine repeats no attempt.
  const patient = { DELIVERY_TIMEOUT_MS: "5000", ...env };
  const running = await startRelayStack({ redis, providerUrl: provider.url, env: patient });
  stack = running;
  return { running, caller: relayCaller(running.gatewayUrl) };
}

const traced = (more: Record<string, string> = {}) =>
  startRelay({ OTEL_EXPORTER_OTLP_ENDPOINT: collector.url, OTEL_BSP_SCHEDULE_DELAY: "50", ...more });

async function injected({ caller }: Relay, traceparent: string | null = TRACEPARENT): Promise<string> {
  const answer = await caller.inject({ headers: { traceparent } });
  return String(answer.body["ad_response_id"]);
}

const becomes = ({ caller }: Relay, id: string, state: string) =>
  eventually(async () => expect((await caller.lookUp(id)).body["state"]).toBe(state), 30_000);

/** Waits for the one span that matches. */
function spanWith(
  fields: Partial<CollectedSpan>,
  attributes: Record<string, unknown> = {},
): Promise<CollectedSpan> {
  return eventually(() => {
    const wanted = { ...fields, attributes: expect.objectContaining(attributes) };
    const found = collector.spans.filter((span) => {
      try {
        expect(span).toMatchObject(wanted);
        return true;
      } catch {
        return false;
      }
    });
    expect(found, JSON.stringify({ fields, attributes })).toHaveLength(1);
    return found[0] ?? expect.unreachable();
  }, 20_000);
}

const lines = ({ running }: Relay, event: string) =>
  [...running.apps.values()].flatMap(({ logs }) => logs).filter((line) => line["event"] === event);

/** The trace ids that a metric has as exemplars, which a scraper gets if it asks for OpenMetrics. */
async function exemplars(opsUrl: string, metric: string): Promise<string[]> {
  const accept = "application/openmetrics-text;version=1.0.0;q=0.5,text/plain;q=0.2";
  const text = await (await fetch(`${opsUrl}/metrics`, { headers: { accept } })).text();
  const found = text.matchAll(new RegExp(`^${metric}_bucket.* # \\{trace_id="([0-9a-f]{32})"\\}`, "gm"));
  return [...found].map(([, traceId = ""]) => traceId);
}

test("an injection is one trace, from its caller's span to the provider", async () => {
  const relay = await traced();
  await injected(relay);
  const server = await spanWith(
    { service: "adrelay-gateway", kind: 2, traceId: TRACE, parentSpanId: CALLERS_SPAN },
    { "adrelay.operation": "start_injection", "adrelay.publisher": "default", "adrelay.outcome": "ok" },
  );
  const client = await spanWith({ kind: 3, traceId: TRACE, parentSpanId: server.spanId });
  expect(provider.posts[0]?.headers["traceparent"]).toBe(`00-${TRACE}-${client.spanId}-01`);
  expect(lines(relay, "request")[0]).toMatchObject({ trace_id: TRACE });
});

test("each attempt links to its request, also after a retry and a kill", async () => {
  provider.onAcknowledge((_post, count) => {
    return count === 0 ? { kind: "answer", status: 500 } : count === 1 ? { kind: "hang" } : acknowledged();
  });
  const relay = await traced({ DELIVERY_TIMEOUT_MS: "3000" });
  const id = await injected(relay, null);
  await relay.caller.acknowledgeUntilAccepted(id, "text", {
    headers: { ...ASYNC, traceparent: TRACEPARENT, tracestate: "v=1" },
  });
  const request = await spanWith({ kind: 2, traceId: TRACE }, { "adrelay.operation": "acknowledge" });
  await spanWith({ name: "intake", traceId: TRACE, parentSpanId: request.spanId });
  await eventually(() => expect(provider.acknowledgmentsOf(id)).toHaveLength(2), 20_000);
  await spanWith({ kind: 5 }, { "adrelay.outcome": "retry", "adrelay.code": "http_500" });
  await relay.running.crash("worker");
  await relay.running.start("worker");
  await becomes(relay, id, "delivered");
  const attempts = [
    await spanWith({ kind: 5, service: "adrelay-worker" }, { "adrelay.outcome": "retry" }),
    await spanWith(
      { kind: 5, service: "adrelay-worker" },
      { "adrelay.outcome": "deliver", "adrelay.code": "ok" },
    ),
  ];
  for (const attempt of attempts) {
    expect(attempt.links).toEqual([{ traceId: TRACE, spanId: request.spanId }]);
    expect(attempt).toMatchObject({ parentSpanId: "", attributes: { "adrelay.ad_response_id": id } });
  }
  expect(new Set([TRACE, ...attempts.map(({ traceId }) => traceId)]).size).toBe(3);
  const last = attempts[1] ?? expect.unreachable();
  const call = await spanWith({ kind: 3, parentSpanId: last.spanId });
  expect(provider.acknowledgmentsOf(id).at(-1)?.headers).toMatchObject({
    traceparent: `00-${last.traceId}-${call.spanId}-01`,
    tracestate: `adrelay=${TRACE}-${request.spanId}`,
  });
  expect(lines(relay, "attempt").at(-1)).toMatchObject({ trace_id: TRACE, attempt_trace_id: last.traceId });
  expect(await exemplars(relay.running.gatewayOpsUrl, "adrelay_http_request_duration_seconds")).toContain(
    TRACE,
  );
  expect(await exemplars(relay.running.workerOpsUrl, "adrelay_acknowledgment_delivery_lag_seconds")).toEqual([
    last.traceId,
  ]);
});

/** A module that ends the process if it loads a part of the SDK. The API may be loaded: the metrics library uses it. */
const WITHOUT_SDK = `import { registerHooks } from "node:module";
registerHooks({
  resolve: (name, context, next) => {
    if (/^@opentelemetry\\/(sdk|core|exporter)/.test(name)) {
      process.exit(9);
    }
    return next(name, context);
  },
});`;

test("without an endpoint the SDK isn't loaded, and the caller's trace passes through", async () => {
  const relay = await startRelay({
    NODE_OPTIONS: `--import=data:text/javascript,${encodeURIComponent(WITHOUT_SDK)}`,
  });
  const id = await injected(relay);
  await relay.caller.acknowledgeUntilAccepted(id, "text", {
    headers: { ...ASYNC, traceparent: TRACEPARENT },
  });
  await becomes(relay, id, "delivered");
  expect(provider.posts.map(({ headers }) => headers["traceparent"])).toEqual([TRACEPARENT, TRACEPARENT]);
  for (const line of [...lines(relay, "attempt"), ...lines(relay, "request").slice(0, 2)]) {
    expect(line).toMatchObject({ trace_id: TRACE });
    expect(line).not.toHaveProperty("attempt_trace_id");
  }
  expect(collector.requests).toEqual([]);
});

test("an invalid traceparent is ignored and not passed on", async () => {
  const relay = await startRelay();
  const id = await injected(relay, `00-${TRACE}-${CALLERS_SPAN}-01-nonsense`);
  await relay.caller.acknowledgeUntilAccepted(id, "text", { headers: { ...ASYNC, traceparent: "nonsense" } });
  await becomes(relay, id, "delivered");
  expect(provider.posts.map(({ headers }) => headers["traceparent"])).toEqual([undefined, undefined]);
  // An attempt's line comes after its booking.
  const [attempt] = await eventually(() => {
    const attempts = lines(relay, "attempt");
    expect(attempts).toHaveLength(1);
    return attempts;
  });
  expect(attempt).not.toHaveProperty("trace_id");
});

test("a trace that its caller doesn't sample isn't sampled here, and goes on", async () => {
  const relay = await traced();
  const unsampled = `00-${TRACE}-${CALLERS_SPAN}-00`;
  const id = await injected(relay, unsampled);
  await relay.caller.acknowledgeUntilAccepted(id, "text", { headers: { ...ASYNC, traceparent: unsampled } });
  await becomes(relay, id, "delivered");
  expect(
    provider.posts.every(({ headers }) => String(headers["traceparent"]).startsWith(`00-${TRACE}-`)),
  ).toBe(true);
  await relay.running.stop();
  expect(collector.spans.filter(({ traceId, kind }) => traceId === TRACE || kind === 5)).toEqual([]);
});

test("a stop sends the remaining spans, with the standard's settings", async () => {
  const relay = await traced({
    OTEL_BSP_SCHEDULE_DELAY: "600000",
    OTEL_SERVICE_NAME: "ads",
    OTEL_EXPORTER_OTLP_HEADERS: "x-tenant=7",
  });
  await injected(relay);
  expect(collector.requests).toEqual([]);
  await relay.running.stop();
  expect(collector.spans.filter(({ traceId }) => traceId === TRACE).map(({ service }) => service)).toEqual([
    "ads",
    "ads",
  ]);
  expect(collector.requests[0]).toMatchObject({ path: "/v1/traces", headers: { "x-tenant": "7" } });
});

test("a collector that is down causes one log line and delays nothing", async () => {
  await collector.close();
  const relay = await traced({ OTEL_EXPORTER_OTLP_TIMEOUT: "100" });
  for (let at = 0; at < 20; at += 1) {
    expect((await relay.caller.inject()).status).toBe(200);
  }
  await eventually(() => expect(lines(relay, "traces_not_sent")).toHaveLength(1), 20_000);
  const stops = await Promise.all([...relay.running.apps.values()].map((app) => app.stop()));
  expect(stops).toEqual([0, 0]);
  expect(lines(relay, "stop_overrun")).toEqual([]);
});

test("invalid tracing settings are logged, and tracing stays off", async () => {
  const relay = await traced({ OTEL_EXPORTER_OTLP_ENDPOINT: "no address with canary" });
  await injected(relay);
  expect(lines(relay, "tracing_failed")).toHaveLength(2);
  expect(JSON.stringify(lines(relay, "tracing_failed"))).not.toContain("canary");
});

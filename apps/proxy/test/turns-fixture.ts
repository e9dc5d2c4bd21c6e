/** The turns half of the proxy on a real store, a real Redis and a scripted ad service, without the HTTP half. */
import { randomUUID } from "node:crypto";
import type { AdResponseId } from "@adrelay/contract";
import type { DialectName } from "@adrelay/core";
import { quotasOf } from "@adrelay/core";
import { startTestRedis } from "@adrelay/dev-servers";
import { openDirectory, ProviderClient, proxiesOf } from "@adrelay/provider";
import {
  Admission,
  type Caller,
  createInjectionMetrics,
  makeStartInjection,
  PendingWork,
  PublisherSeries,
  SessionHashes,
} from "@adrelay/relay-kit";
import { connectRedis, createLogger, createRegistry, Lifecycle, NO_TRACING } from "@adrelay/service-kit";
import { type FindAd, openStore, type Turns } from "@adrelay/store";
import { eventually, parseMetrics, type Samples, startScriptedProvider } from "@adrelay/testkit";
import { AnswerJudge } from "@adrelay/verdict/answer-judge";
import { Redis } from "ioredis";
import { afterAll, expect, onTestFinished } from "vitest";
import { dialectNamed } from "../src/dialects/index.ts";
import type { SurfaceCall } from "../src/http/call.ts";
import { Journal } from "../src/turns/journal.ts";
import { makePrepareCall, type PrepareCallDeps } from "../src/turns/prepare-call.ts";
import { createTurnMetrics } from "../src/turns/turn-metrics.ts";

const NO_LIMIT = { bytes: Number.POSITIVE_INFINITY };
const NO_QUOTAS = quotasOf(
  {},
  {
    requestsPerSecond: Number.POSITIVE_INFINITY,
    burst: Number.POSITIVE_INFINITY,
    bytesPerSecond: Number.POSITIVE_INFINITY,
    bytesBurst: Number.POSITIVE_INFINITY,
    injectionsInFlight: Number.POSITIVE_INFINITY,
    bytesInFlight: NO_LIMIT,
    queuedBytes: NO_LIMIT,
    deadBytes: NO_LIMIT,
    unknownBytes: NO_LIMIT,
  },
);

/** A Redis, an ad service, and a judge of answers, whose thread takes a while to begin, for the tests of one file. */
export async function openServers() {
  const server = await startTestRedis();
  const provider = await startScriptedProvider();
  const admin = new Redis(server.url, { retryStrategy: () => 50, maxRetriesPerRequest: null });
  admin.on("error", () => {});
  const judge = new AnswerJudge({ onFailed: () => {}, timeoutMs: 20_000 });
  judge.start();
  afterAll(async () => {
    await judge.stop();
    admin.disconnect();
    await provider.close();
    await server.dispose();
  });
  return { server, provider, admin, judge };
}

export const PROMPT_WITH_AD = "Which shoes? <ad>Velmora Drift</ad>";

/** What the ad service answers if it has an ad. */
export function filledBody(id: string = randomUUID()) {
  return {
    ad_request_id: randomUUID(),
    ad_response_id: id,
    status: "ok",
    success: true,
    execution_time_ms: 1.5,
    enhanced_prompt: PROMPT_WITH_AD,
    product_name: "Velmora Drift",
  };
}

export type Servers = Awaited<ReturnType<typeof openServers>>;

export interface FixtureOptions extends Partial<PrepareCallDeps> {
  readonly maxBytes?: number;
  readonly textLimitBytes?: number;
  /** Of the store; another fixture's, to stand for a second proxy. */
  readonly partition?: string;
  /** Where the store's connection goes, in place of Redis itself. */
  readonly redisUrl?: string;
  /** Around the store's turns, to count calls. */
  readonly wrapTurns?: (turns: Turns) => Turns;
  /** Default: as the proxy searches. */
  readonly findAd?: FindAd;
  readonly quotas?: ConstructorParameters<typeof Admission>[0]["quotas"];
}

export type TurnsFixture = Awaited<ReturnType<typeof openTurns>>;

export async function openTurns(servers: Servers, options: FixtureOptions = {}) {
  const { provider: adService, admin, server, judge } = servers;
  adService.onStart(() => ({ kind: "answer", status: 200, body: filledBody() }));
  const { partition = randomUUID() } = options;
  const lines: string[] = [];
  const log = createLogger("proxy", "debug", { write: (line) => lines.push(line) });
  const redis = connectRedis(options.redisUrl ?? server.url, "request", log);
  await eventually(() => expect(redis.status).toBe("ready"));
  const { findAd = (text, ad, signal) => judge.find(text, ad, signal) } = options;
  const store = openStore({ redis, recordRetentionMs: 600_000, partition, findAd });
  const turns = options.wrapTurns?.(store.turns) ?? store.turns;
  const publisher = onePublisher(adService.url);
  const registry = createRegistry();
  const provider = new ProviderClient(proxiesOf({}));
  const pending = new PendingWork((err) => log.error({ event: "background_work_failed", err }));
  const journal = new Journal({
    turns,
    findAd,
    metrics: createTurnMetrics(registry),
    log,
    random: Math.random,
    maxBytes: options.maxBytes ?? 64 * 1024 * 1024,
    textLimitBytes: options.textLimitBytes ?? 1024 * 1024,
  });
  journal.start();
  const series = new PublisherSeries({ publishers: { current: [publisher] }, publishersMax: 10 });
  const startInjection = makeStartInjection({
    injections: store.injections,
    provider,
    metrics: createInjectionMetrics(registry, {
      series,
      publishers: { accountOf: () => undefined },
      providersMax: 1,
    }),
    log,
    lifecycle: new Lifecycle(log),
    tracing: NO_TRACING,
    pending,
    drainSignal: new AbortController().signal,
    ackDeadlineMs: 60_000,
  });
  const prepareCall = makePrepareCall({
    turns,
    startInjection,
    journal,
    pending,
    log,
    admission: new Admission({
      quotas: options.quotas ?? NO_QUOTAS,
      callsMax: 1000,
      bytesMax: 100_000_000,
      onRefused: () => {},
    }),
    sessionHashes: new SessionHashes([]),
    canBook: () => true,
    canOpen: () => true,
    ackDeadlineMs: 60_000,
    // Far more than the default, so that a busy machine costs no ad. Tests about the budget have their own.
    injectionTimeoutMs: 10_000,
    turnWaitMs: 600_000,
    ...options,
  });
  const key = (name: string) => `{adrelay:${partition}}:${name}`;
  const close = async () => {
    await journal.stop(AbortSignal.timeout(1000));
    await pending.stop();
    await store.stop();
    await provider.stop();
    redis.disconnect();
  };
  onTestFinished(close);
  return {
    partition,
    redis,
    store,
    turns,
    journal,
    prepareCall,
    publisher,
    lines,
    /** Redis' keys of an ad response's turn: see journal/drop-turn.lua of the store. */
    keysOf: (id: string | undefined) => {
      const member = String(id).replaceAll("-", "");
      return { turn: key(`awaiting:turn:${member}`), text: key(`awaiting:text:${member}`) };
    },
    /** The texts that are queued for an ad response; undefined if none is. */
    queuedText: (id: string | undefined) => loadQueuedText(admin, key("acknowledgments:a*"), id),
    stateOf: async (id: string | undefined) => (await store.acknowledgments.find(asId(id)))?.state,
    metrics: async (): Promise<Samples> => parseMetrics(await registry.metrics()),
    posts: () => adService.posts.length,
  };
}

/** Ids of tests come from the ad service or from the store, which have checked them. */
function asId(id: string | undefined): AdResponseId {
  return id as AdResponseId;
}

async function loadQueuedText(redis: Redis, pattern: string, id: string | undefined) {
  for (const jobKey of await redis.keys(pattern)) {
    const data = (await redis.type(jobKey)) === "hash" ? await redis.hget(jobKey, "data") : null;
    const job = data === null ? undefined : JSON.parse(data);
    if (job?.adResponseId === id) {
      return String(JSON.parse(job.body).llm_response);
    }
  }
  return undefined;
}

function onePublisher(url: string) {
  const provider = {
    url,
    apiKey: "key-of-the-relay",
    apiKeyHeader: "X-Key",
    tlsFiles: { ca: undefined, clientCert: undefined, clientKey: undefined },
  };
  const opened = openDirectory({ file: undefined, apiKeys: [], provider, env: () => undefined });
  const [publisher] = opened.kind === "ok" ? opened.directory.current : [];
  return publisher ?? expect.fail("there is no publisher");
}

export const CONTEXT = {
  "x-adrelay-session-id": "session-1",
  "x-adrelay-user-agent": "Mozilla/5.0",
  "x-adrelay-user-ip": "203.0.113.9",
};

export interface CallOptions {
  readonly dialect?: DialectName;
  readonly headers?: Readonly<Record<string, string>>;
  readonly caller?: Caller;
}

/** A call of a surface, whose body has just come. */
export function surfaceCall(
  { publisher }: Pick<TurnsFixture, "publisher">,
  body: unknown,
  { dialect = "chat_completions", headers = CONTEXT, caller }: CallOptions = {},
): SurfaceCall {
  const values = new Map(Object.entries(headers));
  return {
    dialect: dialectNamed(dialect),
    publisher,
    body: Buffer.from(typeof body === "string" ? body : JSON.stringify(body)),
    header: (name) => values.get(name),
    requestId: randomUUID(),
    trace: undefined,
    bodyAtMs: performance.now(),
    caller: caller ?? { isGone: false, onGone: undefined },
  };
}

const TOOLS = [{ type: "function", function: { name: "look" } }];

/** The body of a chat with one message of the user, and with a tool. */
export function chat(text = "Which shoes?", more: Readonly<Record<string, unknown>> = {}) {
  return { model: "m", stream: true, messages: [{ role: "user", content: text }], tools: TOOLS, ...more };
}

/** The body of the call that answers a tool call of the model. */
export function toolAnswer(callId: string, text = "Which shoes?") {
  const call = { id: callId, type: "function", function: { name: "look", arguments: "{}" } };
  return {
    model: "m",
    stream: true,
    messages: [
      { role: "user", content: text },
      { role: "assistant", content: null, tool_calls: [call] },
      { role: "tool", tool_call_id: callId, content: "sunny" },
    ],
  };
}

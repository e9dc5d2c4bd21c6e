/** Injections with a real Redis and a real provider: how an ad is recorded in another way, and what if that fails. */
import { randomUUID } from "node:crypto";
import { setTimeout as wait } from "node:timers/promises";
import { type AdResponseId, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { openDirectory, ProviderClient, type Publisher } from "@adrelay/provider";
import { connectRedis, createRegistry, guardRedis, Lifecycle, NO_TRACING } from "@adrelay/service-kit";
import { openStore, type Store } from "@adrelay/store";
import {
  type Behaviour,
  eventually,
  filled,
  type ScriptedProvider,
  startScriptedProvider,
  unfilled,
} from "@adrelay/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  createInjectionMetrics,
  makeStartInjection,
  PendingWork,
  PublisherSeries,
  type StartInjection,
} from "../src/index.ts";
import { RECORD_TIMEOUT_MS } from "../src/injection/record-answer.ts";
import type { Caller } from "../src/injection/waits.ts";

const log = pino({ level: "silent" });
const LONG_MS = 10_000;

type ProviderCall = Parameters<ProviderClient["startInjection"]>[0];
const ACK_DEADLINE_MS = 60_000;

let server: TestRedis;
let provider: ScriptedProvider;
let client: ProviderClient;
let redis: ReturnType<typeof connectRedis>;
let store: Store;

beforeAll(async () => {
  [server, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  client = new ProviderClient();
  redis = connectRedis(server.url, "request", log);
  await guardRedis(redis, { mode: "require" }, log);
  store = openStore({ redis, recordRetentionMs: 60_000 });
});
afterAll(async () => {
  await store.stop();
  redis.disconnect();
  await Promise.all([client.stop(), provider.close(), server.dispose()]);
});

function openPublishers() {
  const account = {
    url: provider.url,
    apiKey: "key-of-the-relay",
    apiKeyHeader: "X-Key",
    tlsFiles: { ca: undefined, clientCert: undefined, clientKey: undefined },
  };
  const opened = openDirectory({
    file: undefined,
    apiKeys: ["key-of-the-caller"],
    provider: account,
    env: () => undefined,
  });
  return opened.kind === "ok" ? opened.directory : expect.fail("there are no publishers");
}

function setup() {
  const publishers = openPublishers();
  const [publisher = expect.fail("there is no publisher")] = publishers.current;
  const registry = createRegistry();
  const series = new PublisherSeries({ publishers, publishersMax: 1 });
  const metrics = createInjectionMetrics(registry, { series, publishers, providersMax: 1 });
  const pending = new PendingWork((error) => expect.fail(String(error)));
  const calls: ProviderCall[] = [];
  const startInjection = (call: ProviderCall) => {
    calls.push(call);
    return client.startInjection(call);
  };
  const start = makeStartInjection({
    injections: store.injections,
    provider: { startInjection },
    metrics,
    log,
    lifecycle: new Lifecycle(log),
    tracing: NO_TRACING,
    pending,
    drainSignal: new AbortController().signal,
    ackDeadlineMs: ACK_DEADLINE_MS,
  });
  const id = adResponseIdSchema.parse(randomUUID());
  provider.onStart(() => filled({ ad_response_id: id }));
  const inject = (input: Partial<Parameters<StartInjection>[0]>) =>
    start({ ...inputOf(publisher), ...input }, Buffer.from("{}"));
  /** The outcomes that were counted, and the untracked injections. */
  const loadCounts = async () => {
    const sums = await Promise.all(
      ["adrelay_injections_total", "adrelay_injections_untracked_total"].map(
        async (name) => (await registry.getSingleMetric(name)?.get())?.values ?? [],
      ),
    );
    return sums
      .flat()
      .flatMap(({ labels, value }) => (value === 0 ? [] : [`${labels["outcome"] ?? "untracked"} ${value}`]));
  };
  return { publisher, id, inject, pending, calls, loadCounts };
}

function inputOf(publisher: Publisher) {
  const held = { release: () => {} };
  return {
    publisher,
    session: undefined,
    requestId: "r",
    trace: undefined,
    timeoutMs: LONG_MS,
    caller: { isGone: false, onGone: undefined },
    holding: { holdAnswer: () => true, takeBody: () => held, takeAnswer: () => held },
  };
}

type Mutable<T> = { -readonly [K in keyof T]: T[K] };

const NEVER = new Promise<never>(() => {});

test("an ad that is recorded in its own way is recorded only so", async () => {
  const { id, inject, loadCounts } = setup();
  const seen: AdResponseId[] = [];
  const recordOk = async (one: AdResponseId) => {
    seen.push(one);
    return { deadlineAtMs: undefined };
  };
  const answer = await inject({ recordOk, untrackedOk: "abandon" });
  expect(answer).toMatchObject({ kind: "pass_through", outcome: "ok", untrackedId: undefined });
  expect(seen).toEqual([id]);
  expect(await store.acknowledgments.find(id)).toBeUndefined();
  expect(await loadCounts()).toEqual(["ok 1"]);
});

test("an answer without an ad is recorded as always", async () => {
  const { inject, loadCounts } = setup();
  provider.onStart(() => unfilled(202));
  const recordOk = () => Promise.reject(new TypeError("there is no ad"));
  const answer = await inject({ recordOk, untrackedOk: "abandon" });
  expect(answer).toMatchObject({ kind: "pass_through", outcome: "no_fill", untrackedId: undefined });
  expect(await loadCounts()).toEqual(["no_fill 1"]);
});

test("an ad without a confirmed record that isn't used is booked as abandoned", async () => {
  const { id, inject, pending, loadCounts } = setup();
  const recordOk = () => Promise.reject(new TypeError("Redis is away"));
  const answer = await inject({ recordOk, untrackedOk: "abandon" });
  expect(answer).toMatchObject({ kind: "pass_through", outcome: "ok", untrackedId: id });
  await pending.stop();
  expect(await store.acknowledgments.find(id)).toMatchObject({ state: "abandoned" });
  expect(await loadCounts()).toEqual(["abandoned 1", "untracked 1"]);
});

test("a record that came through unconfirmed is not booked as abandoned", async () => {
  const { id, publisher, inject, pending } = setup();
  const recordOk = async () => {
    await store.injections.record({
      id,
      publisher: publisher.id,
      outcome: "ok",
      deadlineMs: ACK_DEADLINE_MS,
    });
    return NEVER;
  };
  const answer = await inject({ recordOk, untrackedOk: "abandon" });
  expect(answer).toMatchObject({ untrackedId: id });
  await pending.stop();
  expect(await store.acknowledgments.find(id)).toMatchObject({ state: "awaiting" });
});

test("an ad without a confirmed record goes out untracked by default", async () => {
  const { id, inject, pending, loadCounts } = setup();
  const answer = await inject({ recordOk: () => Promise.reject(new TypeError("Redis is away")) });
  expect(answer).toMatchObject({ kind: "pass_through", outcome: "ok", untrackedId: id });
  await pending.stop();
  expect(await store.acknowledgments.find(id)).toBeUndefined();
  expect(await loadCounts()).toEqual(["ok 1", "untracked 1"]);
});

test("a record that is slower than an answer may be delayed is waited for, if the caller allows it", async () => {
  const { inject, pending, loadCounts } = setup();
  const recordOk = () => wait(2 * RECORD_TIMEOUT_MS, { deadlineAtMs: undefined });
  expect(await inject({ recordOk, recordMaxMs: LONG_MS })).toMatchObject({ untrackedId: undefined });
  expect(await loadCounts()).toEqual(["ok 1"]);
  await pending.stop();
});

test("the provider has only the time that is not kept for the record", async () => {
  const { inject, loadCounts } = setup();
  provider.onStart(() => ({ kind: "hang" }));
  const startedAtMs = performance.now();
  const answer = await inject({ timeoutMs: LONG_MS, recordReserveMs: LONG_MS - 50 });
  expect(answer).toMatchObject({ kind: "fallback", reason: "timeout", untrackedId: undefined });
  expect(performance.now() - startedAtMs).toBeLessThan(LONG_MS / 2);
  expect(await loadCounts()).toEqual(["fallback 1"]);
});

test("late answers of one publisher don't end those of another one", async () => {
  const { id, publisher, inject, pending } = setup();
  const answers = Promise.withResolvers<void>();
  /** Asks as often for a publisher; all callers hang up once the provider has their requests. */
  const hangUp = async (of: Publisher, count: number, answer: Behaviour) => {
    provider.onStart(() => ({ kind: "held", until: answers.promise, answer }));
    const before = provider.posts.length;
    const callers = Array.from(
      { length: count },
      (): Mutable<Caller> => ({ isGone: false, onGone: undefined }),
    );
    const asked = callers.map((caller) => inject({ publisher: of, caller }));
    await eventually(() => expect(provider.posts).toHaveLength(before + count));
    for (const caller of callers) {
      caller.isGone = true;
      caller.onGone?.();
    }
    expect(await Promise.all(asked)).toEqual(Array(count).fill({ kind: "caller_gone" }));
  };
  await hangUp(publisher, 1, filled({ ad_response_id: id }));
  await hangUp({ ...publisher, id: publisherIdSchema.parse("another") }, 70, unfilled(202));
  answers.resolve();
  await pending.stop();
  expect(await store.acknowledgments.find(id)).toMatchObject({ state: "abandoned" });
});

test("the provider isn't called for a caller that is gone", async () => {
  const { inject, calls, loadCounts } = setup();
  expect(await inject({ caller: { isGone: true, onGone: undefined } })).toEqual({ kind: "caller_gone" });
  expect(calls).toEqual([]);
  expect(await loadCounts()).toEqual([]);
});

/** Accepting acknowledgments on a real Redis: what callers are promised when many share a call of a script. */
import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { connectRedis, guardRedis, Lifecycle, NO_TRACING } from "@adrelay/service-kit";
import { acknowledgedOf, openStore, type Store, textHashOf } from "@adrelay/store";
import { eventually } from "@adrelay/testkit";
import type { Redis } from "ioredis";
import { pino } from "pino";
import { afterAll, beforeAll, describe, expect, onTestFinished, test, vi } from "vitest";
import {
  type AcknowledgeDeps,
  type AcknowledgeInput,
  makeAcknowledge,
} from "../src/acknowledge/acknowledge.ts";
import { OutcomeWaiters } from "../src/acknowledge/outcome-waiters.ts";

const log = pino({ level: "silent" });
const UNAVAILABLE = { kind: "error", code: "queue_unavailable" };
let server: TestRedis;
let redis: Redis;
let store: Store;

beforeAll(async () => {
  server = await startTestRedis();
  redis = connectRedis(server.url, "request", log);
  await guardRedis(redis, { mode: "require" }, log);
  store = openStore({ redis, recordRetentionMs: 60_000 });
});
afterAll(async () => {
  await store.stop();
  redis.disconnect();
  await server.dispose();
});

function newInput(): AcknowledgeInput {
  return {
    id: adResponseIdSchema.parse(randomUUID()),
    ackId: adAckIdSchema.parse(randomUUID()),
    publisher: publisherIdSchema.parse("ours"),
    text: "text",
    body: "{}",
    requestId: "r",
    trace: undefined,
    onLetGo: () => {},
    waitMs: 0,
    caller: { isGone: false, onGone: undefined },
  };
}

/** An acceptance without a wait is `open`, and so is a repeat while it is queued. */
const OPEN = { kind: "open", state: "queued" };

function acknowledgeWith(
  acknowledgments: AcknowledgeDeps["acknowledgments"],
  onAccepted = () => {},
  waiters = new OutcomeWaiters(redis),
) {
  return makeAcknowledge({
    acknowledgments,
    waiters,
    log,
    lifecycle: new Lifecycle(log),
    tracing: NO_TRACING,
    durability: { isDurable: true },
    onAccepted,
    onOverQuota: () => {},
  });
}

test("an acknowledgment is accepted although Redis has forgotten the scripts", async () => {
  const acknowledge = acknowledgeWith(store.acknowledgments);
  expect(await acknowledge(newInput())).toEqual(OPEN);
  await redis.script("FLUSH");
  const input = newInput();
  expect(await acknowledge(input)).toEqual(OPEN);
  expect(await store.acknowledgments.find(input.id)).toMatchObject({ state: "queued" });
});

test("acknowledgments of one turn are each in the queue and in the ledger", async () => {
  let accepted = 0;
  const acknowledge = acknowledgeWith(store.acknowledgments, () => {
    accepted += 1;
  });
  const before = (await store.queueDepths()).waiting;
  const inputs = Array.from({ length: 150 }, newInput);
  const outcomes = await Promise.all([...inputs, ...inputs.slice(0, 3)].map(acknowledge));
  expect(outcomes).toEqual(Array.from({ length: 153 }, () => OPEN));
  expect(accepted).toBe(150);
  expect((await store.queueDepths()).waiting).toBe(before + 150);
  for (const { id, publisher, text } of inputs) {
    const entry = await store.acknowledgments.find(id);
    expect(entry && acknowledgedOf(entry)?.textHash).toBe(textHashOf(publisher, text));
  }
});

test("a job that Redis has no memory for gets no 2xx and no entry", async () => {
  const acknowledge = acknowledgeWith(store.acknowledgments);
  await redis.config("SET", "maxmemory", "1");
  const input = newInput();
  expect(await acknowledge(input)).toEqual({ kind: "error", code: "storage_full" });
  await redis.config("SET", "maxmemory", "0");
  expect(await store.acknowledgments.find(input.id)).toBeUndefined();
  expect(await acknowledge(input)).toEqual(OPEN);
});

test("a call to Redis that never ends is abandoned within the promised second", async () => {
  const acknowledge = acknowledgeWith({ ...store.acknowledgments, accept: () => new Promise(() => {}) });
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
  onTestFinished(() => void vi.useRealTimers());
  let outcome: unknown;
  void acknowledge(newInput()).then((ended) => {
    outcome = ended;
  });
  await vi.advanceTimersByTimeAsync(999);
  expect(outcome).toEqual(UNAVAILABLE);
});

const WAIT_MS = 30_000;

/** Begins the wait of an acknowledgment. One that hears nothing asks the ledger again and again. */
function beginWait(input: AcknowledgeInput, hears: boolean) {
  const steps = { accepted: 0, questions: 0 };
  const find: Store["acknowledgments"]["find"] = (id) => {
    steps.questions += 1;
    return store.acknowledgments.find(id);
  };
  const onAccepted = () => {
    steps.accepted += 1;
  };
  const waiters = new OutcomeWaiters(redis, () => hears);
  const acknowledge = acknowledgeWith({ ...store.acknowledgments, find }, onAccepted, waiters);
  const caller: { isGone: boolean; onGone: (() => void) | undefined } = { isGone: false, onGone: undefined };
  const hangUp = () => {
    caller.isGone = true;
    caller.onGone?.();
  };
  return { outcome: acknowledge({ ...input, waitMs: WAIT_MS, caller }), steps, hangUp };
}

/** The wait ends long before its time is up. */
async function expectEnd(outcome: ReturnType<typeof beginWait>["outcome"]): Promise<void> {
  const startedAtMs = performance.now();
  expect(await outcome).toEqual(OPEN);
  expect(performance.now() - startedAtMs).toBeLessThan(WAIT_MS / 2);
}

describe.each([
  ["an acknowledgment", true, false],
  ["an acknowledgment that hears nothing", false, false],
  ["a repeat", true, true],
])("the wait of %s", (_name, hears, isRepeat) => {
  async function setup() {
    const input = newInput();
    if (isRepeat) {
      await acknowledgeWith(store.acknowledgments)(input);
    }
    return beginWait(input, hears);
  }

  test("ends when its caller hangs up", async () => {
    const { outcome, steps, hangUp } = await setup();
    await eventually(() => expect(isRepeat ? steps.questions : steps.accepted).toBeGreaterThan(0));
    hangUp();
    await expectEnd(outcome);
  });

  test("doesn't begin if its caller has hung up meanwhile", async () => {
    const { outcome, steps, hangUp } = await setup();
    hangUp();
    await expectEnd(outcome);
    expect(steps.questions).toBe(0);
  });
});

/**
 * Guards the turns of a proxy that is gone, with real processes and at their real pace: no ad of it is missed, each is
 * acknowledged once with what the journal has, and the counters of every process balance.
 */
import { randomUUID } from "node:crypto";
import { adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { openStore, type StepRef, type Store, TURN_LEASE_MS } from "@adrelay/store";
import {
  acknowledged,
  callerKeyOf,
  eventually,
  fetchLedgerMetrics,
  type PublishersFile,
  type RelayCaller,
  type RelayStack,
  relayCaller,
  type ScriptedProvider,
  startRelayStack,
  startScriptedProvider,
  writePublishersFile,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";

const TURNS = 30;
const DAY_MS = 86_400_000;
/** A lease, the time for which Redis must have answered, and a slow machine. */
const PATIENCE_MS = 3 * TURN_LEASE_MS;
const usual = publisherIdSchema.parse("usual");
const abandoning = publisherIdSchema.parse("abandoning");

let server: TestRedis;
let redis: Redis;
let provider: ScriptedProvider;
let file: PublishersFile;
let stack: RelayStack;
let caller: RelayCaller;
let store: Store;

beforeAll(async () => {
  [server, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  provider.onAcknowledge(() => acknowledged());
  const common = { providerUrl: provider.url, keyEnv: "KEY" };
  file = writePublishersFile([
    { id: usual, ...common },
    { id: abandoning, ...common, more: "empty_answers: abandon" },
  ]);
  // Far shorter than a lease: it says nothing of turns.
  const env = { PUBLISHERS_FILE: file.path, API_KEYS: "", KEY: "key", ACK_DEADLINE_MS: "1000" };
  stack = await startRelayStack({ redis: server, providerUrl: provider.url, env });
  caller = relayCaller(stack.gatewayUrl, callerKeyOf(usual));
  redis = new Redis(server.url);
  store = openStore({ redis, recordRetentionMs: DAY_MS });
});
afterAll(async () => {
  await store.stop();
  await stack.stop();
  redis.disconnect();
  await Promise.all([provider.close(), server.dispose()]);
  file.remove();
});

async function open(publisher = usual): Promise<StepRef> {
  const turn = { id: adResponseIdSchema.parse(randomUUID()), publisher, dialect: "messages" } as const;
  const opened = await store.turns.open({
    ...turn,
    kind: "journaled",
    token: randomUUID(),
    session: undefined,
  });
  return opened.kind === "opened" ? opened.step : expect.fail("the id was known");
}

test(
  "the ads of a proxy that is gone are acknowledged once with what they had written, and none is missed",
  async () => {
    const steps = await Promise.all(Array.from({ length: TURNS }, () => open()));
    const writes = steps.map((step) => ({ step, sequence: 1, text: `Try ${step.id}` }));
    expect(new Set(await store.turns.write(writes))).toEqual(new Set(["alive"]));
    const empty = await open(abandoning);
    const [first = empty] = steps;
    const { body } = await caller.lookUp(first.id);
    expect(body).toMatchObject({
      state: "awaiting",
      deadline_at: null,
      turn: { dialect: "messages", steps: 1 },
    });
    await eventually(async () => {
      const states = await Promise.all(steps.map(({ id }) => caller.lookUp(id)));
      expect(new Set(states.map((answer) => answer.body["state"]))).toEqual(new Set(["delivered"]));
      expect(await store.acknowledgments.find(empty.id)).toMatchObject({ state: "abandoned" });
    }, PATIENCE_MS);
    for (const { id } of steps) {
      const posts = provider.acknowledgmentsOf(id).map(({ fields }) => fields);
      expect(posts).toEqual([{ ad_response_id: id, llm_response: `Try ${id}` }]);
    }
    expect(provider.acknowledgmentsOf(empty.id)).toEqual([]);
    const second = await caller.acknowledgeUntilAccepted(first.id, "another text");
    expect(second).toMatchObject({ status: 200, body: { status: "ok" } });
    for (const url of [stack.gatewayOpsUrl, stack.workerOpsUrl]) {
      const samples = await fetchLedgerMetrics(url);
      expect(samples.get("adrelay_books_imbalance")).toBe(0);
      expect(samples.get(`adrelay_turns_open{publisher="${usual}"}`)).toBe(0);
      const labels = `dialect="messages",outcome="orphaned",publisher="${usual}"`;
      expect(samples.get(`adrelay_turns_total{${labels}}`)).toBe(TURNS);
      expect(samples.get(`adrelay_acknowledgments_missed_total{publisher="${usual}"}`)).toBe(0);
    }
  },
  2 * PATIENCE_MS,
);

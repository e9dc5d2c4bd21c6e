/** What an entry costs, measured on a real Redis, against the figures of docs/sizing.md. */
import type { AdResponseId } from "@adrelay/contract";
import { readDocument } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  jobOf,
  newId,
  openTestRedis,
  openTestStore,
  publisher,
  type StoreFixture,
  settlementOf,
} from "./store-fixture.ts";

const { redis } = await openTestRedis();
/** They create what exists only once, and fill what is bounded, such as BullMQ's stream of events. */
const FIRST = 1000;
const ENTRIES = 2000;
const AT_A_TIME = 100;
const DAY_MS = 86_400_000;
const TEXT = "x".repeat(2000);

let fixture: StoreFixture;
beforeAll(async () => {
  // The buffers of the append-only file would be measured, too.
  await redis.config("SET", "appendonly", "no");
  fixture = openTestStore(redis, { recordRetentionMs: DAY_MS });
});
afterAll(() => fixture.stop());

const record = (id: AdResponseId) =>
  fixture.injections.record({ id, publisher, outcome: "ok", deadlineMs: DAY_MS });
const hashOf = (id: AdResponseId) => id.slice(0, 22);
const bodyOf = (id: AdResponseId) => JSON.stringify({ ad_response_id: id, llm_response: TEXT });

/** What leads a fresh id into each state of the table. */
const FILLS: Record<string, (id: AdResponseId) => Promise<unknown>> = {
  "without an ad": (id) => fixture.injections.record({ id, publisher, outcome: "no_fill" }),
  awaiting: record,
  "awaiting with a turn": (id) =>
    fixture.turns.open({
      kind: "journaled",
      id,
      publisher,
      dialect: "messages",
      token: newId(),
      session: undefined,
    }),
  delivered: async (id) => {
    await record(id);
    await fixture.begin(id, hashOf(id));
    const settlement = { ...settlementOf(id, "deliver", { code: "ok" }), providerAckId: newId() };
    await fixture.completer.settle(settlement);
    await redis.del(fixture.parts.queue.payloadKey(id));
  },
  "queued or dead, besides its body": async (id) => {
    await record(id);
    const job = { ...jobOf(id), body: bodyOf(id), requestId: newId() };
    await fixture.acknowledgments.accept({ job, textHash: hashOf(id) });
  },
};

/** The bytes of an entry by docs/sizing.md. */
const documented = new Map(
  [...readDocument("docs/sizing.md").matchAll(/^\| ([\w ,]+?) \| ([\d,]+) B \|/gm)].map(
    ([, state = "", bytes = ""]) => [state, Number(bytes.replaceAll(",", ""))] as const,
  ),
);

async function bytesOf(fill: (id: AdResponseId) => Promise<unknown>): Promise<number> {
  const fillMany = async (count: number) => {
    for (let done = 0; done < count; done += AT_A_TIME) {
      await Promise.all(Array.from({ length: AT_A_TIME }, () => fill(newId())));
    }
  };
  const used = async () => Number(/used_memory:(\d+)/.exec(await redis.info("memory"))?.[1]);
  await fillMany(FIRST);
  const before = await used();
  await fillMany(ENTRIES);
  return ((await used()) - before) / ENTRIES;
}

test.each(Object.keys(FILLS))("an entry that is %s costs what the sizing guide says", async (state) => {
  const fill = FILLS[state] ?? record;
  const body = state.startsWith("queued") ? bodyOf(newId()).length : 0;
  const bytes = (await bytesOf(fill)) - body;
  const said = documented.get(state) ?? 0;
  expect(bytes).toBeLessThan(said * 1.2);
  expect(bytes).toBeGreaterThan(said * 0.5);
});

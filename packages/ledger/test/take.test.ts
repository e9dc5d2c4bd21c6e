/**
 * Taking acknowledgments on a real Redis: every state against the rules of core, and many in one call. The queue is the
 * least that a queue can be; the gateway's tests have the real one.
 */
import { type AdResponseId, publisherIdSchema } from "@adrelay/contract";
import { decideIntake, ENTRY_STATES, type EntryState, type IntakeDecision } from "@adrelay/core";
import { startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import { Redis } from "ioredis";
import { afterAll, beforeAll, expect, test } from "vitest";
import { LedgerRefusalError, type TakeRequest, type TakeResult, Taker } from "../src/index.ts";
import { type BooksFixture, fire, openBooks, PATHS, publisher } from "./books-fixture.ts";

const theirs = publisherIdSchema.parse("theirs");
const PLAIN_QUEUE = `
  local function queueJob(keys, prefix, id, name, data, timestamp)
    redis.call('HSETNX', prefix .. id, 'name', name)
    return redis.call('HGET', prefix .. id, 'name')
  end
`;
let server: TestRedis;
let redis: Redis;

beforeAll(async () => {
  server = await startTestRedis();
  redis = new Redis(server.url);
});
afterAll(async () => {
  redis.disconnect();
  await server.dispose();
});

function setup(takesUnknown = true) {
  const books = openBooks(redis);
  const jobPrefix = `{adrelay:${books.partition}}:jobs:`;
  const insertion = { lua: PLAIN_QUEUE, keys: [], jobPrefix };
  const taker = new Taker({
    redis,
    partition: books.partition,
    takesUnknown,
    insertion,
    inTime: (call) => call,
  });
  const take = (id: AdResponseId, more: Partial<TakeRequest> = {}) =>
    taker.take({ id, publisher, textHash: "hash", job: { id: `job-${id}`, data: "{}" }, ...more });
  const queuedText = (id: AdResponseId) => redis.hget(`${jobPrefix}job-${id}`, "name");
  return { ...books, take, queuedText };
}

async function newIdIn(books: BooksFixture, state: EntryState): Promise<AdResponseId> {
  const id = books.newId();
  for (const step of PATHS[state]) {
    await fire(books, id, step);
  }
  return id;
}

const ACCEPTED: Partial<Record<EntryState, TakeResult["kind"]>> = {
  absent: "accepted_unknown",
  awaiting: "accepted",
  missed: "accepted_late",
};
const REFUSED = {
  unknown_ad_response: "unknown",
  other_publisher: "other_publisher",
  not_acknowledgeable: "not_acknowledgeable",
  acknowledgment_conflict: "conflict",
} as const;

function expectedKind(state: EntryState, decision: IntakeDecision): TakeResult["kind"] | undefined {
  switch (decision.kind) {
    case "enqueue":
      return ACCEPTED[state];
    case "repeat":
      return "repeat";
    case "refuse":
      return REFUSED[decision.code];
    default:
      return decision satisfies never;
  }
}

const QUESTIONS = {
  "the same text": { publisher, textHash: "hash" },
  "another text": { publisher, textHash: "another" },
  "another publisher's": { publisher: theirs, textHash: "hash" },
};

test.each(
  ENTRY_STATES.flatMap((state) =>
    Object.entries(QUESTIONS).flatMap(([what, question]) =>
      [true, false].map((takesUnknown) => [state, what, takesUnknown, question] as const),
    ),
  ),
)(
  "in state %s %s is decided as core does, unknown ids taken: %s",
  async (state, _what, takesUnknown, question) => {
    const fixture = setup(takesUnknown);
    const id = await newIdIn(fixture, state);
    const entry = await fixture.ledger.find(id);
    const before = await fixture.ledger.snapshot();
    const decision = decideIntake({ entry, takesUnknown, ...question });
    const taken = await fixture.take(id, question);
    expect(taken.kind).toBe(expectedKind(state, decision));
    expect(await fixture.queuedText(id)).toBe(decision.kind === "enqueue" ? question.textHash : null);
    const after = await fixture.ledger.find(id);
    if (decision.kind === "enqueue") {
      expect(after).toMatchObject({ state: "queued", ...question });
    } else {
      expect(after).toEqual(entry);
      expect((await fixture.ledger.snapshot()).totals).toEqual(before.totals);
    }
    if (taken.kind === "repeat") {
      expect(taken.entry).toEqual(entry);
    }
  },
);

test.each(["absent", "awaiting", "missed"] as const)(
  "what is taken in state %s stands in the books as what a worker books there",
  async (state) => {
    const [taken, accepted] = [setup(), setup()];
    const [id, other] = [await newIdIn(taken, state), await newIdIn(accepted, state)];
    await taken.take(id);
    await accepted.accept(other);
    const timeless = async ({ ledger }: BooksFixture, of: AdResponseId) => {
      const text = JSON.stringify([await ledger.find(of), [...(await ledger.snapshot()).totals]]);
      return text.replaceAll(of, "ID").replaceAll(/\d{13}/g, "T");
    };
    expect(await timeless(taken, id)).toBe(await timeless(accepted, other));
    expect((await taken.ledger.snapshot()).states).toEqual((await accepted.ledger.snapshot()).states);
  },
);

test("an acknowledgment whose id the queue holds with another text is not booked", async () => {
  const { ledger, newId, take, queuedText } = setup();
  const id = newId();
  await take(id, { textHash: "first" });
  const other = newId();
  // The other entry's job has the first one's id: the queue keeps the first text.
  expect(await take(other, { job: { id: `job-${id}`, data: "{}" } })).toEqual({ kind: "conflict" });
  expect(await ledger.find(other)).toBeUndefined();
  expect(await queuedText(id)).toBe("first");
});

test("acknowledgments of one turn have their own answers and exact counts", async () => {
  const { ledger, newId, take, accept } = setup();
  const ids = Array.from({ length: 150 }, () => newId());
  const known = newId();
  await accept(known);
  const [first, ...fresh] = ids;
  const taken = await Promise.all([
    take(known),
    take(known, { textHash: "another" }),
    ...ids.map((id) => take(id)),
    take(first ?? known),
  ]);
  expect(taken.map(({ kind }) => kind)).toEqual([
    "repeat",
    "conflict",
    "accepted_unknown",
    ...fresh.map(() => "accepted_unknown"),
    "repeat",
  ]);
  const { totals, states } = await ledger.snapshot();
  expect(totals.get("accepted")).toMatchObject([{ value: 151 }]);
  expect(states).toMatchObject([{ value: 151 }]);
});

test("one that Redis refuses disturbs no other of its turn", async () => {
  const { ledger, newId, take, partition } = setup();
  const ids = [newId(), newId(), newId()];
  await redis.set(`{adrelay:${partition}}:e:${ids[1]?.replaceAll("-", "")}`, "no hash");
  const [before, refused, after] = await Promise.allSettled(ids.map((id) => take(id)));
  expect(refused).toMatchObject({ status: "rejected", reason: expect.any(LedgerRefusalError) });
  expect([before, after]).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
  expect((await ledger.snapshot()).totals.get("accepted")).toMatchObject([{ value: 2 }]);
});

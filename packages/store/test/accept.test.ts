/**
 * Accepting acknowledgments on a real Redis and a real queue: each state compared with the rules of core, and many in
 * one call.
 */
import { type AdResponseId, publisherIdSchema } from "@adrelay/contract";
import { decideIntake, ENTRY_STATES, type EntryState, type IntakeDecision } from "@adrelay/core";
import { expect, test } from "vitest";
import { acknowledgedOf, NO_LIMITS } from "../src/index.ts";
import type { AcceptRequest, AcceptResult } from "../src/intake/accept.ts";
import { StoreRefusalError } from "../src/redis/scripts.ts";
import {
  jobOf,
  newId,
  newIdIn,
  openTestRedis,
  openTestStore,
  publisher,
  type StoreFixture,
} from "./store-fixture.ts";

const theirs = publisherIdSchema.parse("theirs");
const { redis } = await openTestRedis();

function setup(acceptsUnknown = true) {
  const fixture = openTestStore(redis, {
    intakeRules: () => ({ acceptsUnknown, limits: NO_LIMITS }),
  });
  const accept = (id: AdResponseId, { textHash = "hash", ...job }: Changes = {}) =>
    fixture.acknowledgments.accept({ job: { ...jobOf(id), ...job }, textHash });
  const queuedText = (id: AdResponseId) => redis.hget(fixture.parts.queue.payloadKey(id), "name");
  return { ...fixture, accept, queuedText };
}

type Changes = Partial<AcceptRequest["job"]> & { readonly textHash?: string };

const ACCEPTED: Partial<Record<EntryState, AcceptResult["kind"]>> = {
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

function expectedKind(state: EntryState, decision: IntakeDecision): AcceptResult["kind"] | undefined {
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
      [true, false].map((acceptsUnknown) => [state, what, acceptsUnknown, question] as const),
    ),
  ),
)(
  "in state %s %s is decided by the rules of core, unknown ids accepted: %s",
  async (state, _what, acceptsUnknown, question) => {
    const fixture = setup(acceptsUnknown);
    const id = await newIdIn(fixture, state);
    const entry = await fixture.find(id);
    const before = await fixture.snapshot();
    const queuedBefore = await fixture.queuedText(id);
    const known = entry && { ...entry, textHash: acknowledgedOf(entry)?.textHash };
    const decision = decideIntake({ entry: known, acceptsUnknown, ...question });
    const accepted = await fixture.accept(id, question);
    expect(accepted.kind).toBe(expectedKind(state, decision));
    expect(await fixture.queuedText(id)).toBe(decision.kind === "enqueue" ? question.textHash : queuedBefore);
    const after = await fixture.find(id);
    if (decision.kind === "enqueue") {
      expect(after).toMatchObject({ state: "queued", ...question });
    } else {
      expect(after).toEqual(entry);
      expect((await fixture.snapshot()).totals).toEqual(before.totals);
    }
    if (accepted.kind === "repeat") {
      expect(accepted.entry).toEqual(entry);
    }
  },
);

test.each(["absent", "awaiting", "missed"] as const)(
  "in state %s intake books an acknowledgment in the same way as a worker",
  async (state) => {
    const [accepting, beginning] = [setup(), setup()];
    const [id, other] = [await newIdIn(accepting, state), await newIdIn(beginning, state)];
    await accepting.accept(id);
    await beginning.begin(other);
    const timeless = async ({ find, snapshot }: StoreFixture, of: AdResponseId) => {
      const text = JSON.stringify([await find(of), [...(await snapshot()).totals]]);
      return text.replaceAll(of, "ID").replaceAll(/\d{13}/g, "T");
    };
    expect(await timeless(accepting, id)).toBe(await timeless(beginning, other));
    expect((await accepting.snapshot()).states).toEqual((await beginning.snapshot()).states);
  },
);

test("an acknowledgment whose job the queue holds with another text is not booked", async () => {
  const { find, accept, queuedText, parts } = setup();
  const id = newId();
  await redis.hset(parts.queue.payloadKey(id), "name", "first");
  expect(await accept(id)).toEqual({ kind: "conflict" });
  expect(await find(id)).toBeUndefined();
  expect(await queuedText(id)).toBe("first");
});

test("acknowledgments of one turn have their own replies and exact counts", async () => {
  const { snapshot, accept, begin } = setup();
  const ids = Array.from({ length: 150 }, () => newId());
  const known = newId();
  await begin(known);
  const [first, ...fresh] = ids;
  const accepted = await Promise.all([
    accept(known),
    accept(known, { textHash: "another" }),
    ...ids.map((id) => accept(id)),
    accept(first ?? known),
  ]);
  expect(accepted.map(({ kind }) => kind)).toEqual([
    "repeat",
    "conflict",
    "accepted_unknown",
    ...fresh.map(() => "accepted_unknown"),
    "repeat",
  ]);
  const { totals, states } = await snapshot();
  expect(totals.get("accepted")).toMatchObject([{ value: 151 }]);
  expect(states).toMatchObject([{ value: 151 }]);
});

test("an acknowledgment that Redis refuses affects no other of its turn", async () => {
  const { snapshot, accept, key } = setup();
  const ids = [newId(), newId(), newId()];
  await redis.set(key(`e:${ids[1]?.replaceAll("-", "")}`), "no hash");
  const [before, refused, after] = await Promise.allSettled(ids.map((id) => accept(id)));
  expect(refused).toMatchObject({ status: "rejected", reason: expect.any(StoreRefusalError) });
  expect([before, after]).toMatchObject([{ status: "fulfilled" }, { status: "fulfilled" }]);
  expect((await snapshot()).totals.get("accepted")).toMatchObject([{ value: 2 }]);
});

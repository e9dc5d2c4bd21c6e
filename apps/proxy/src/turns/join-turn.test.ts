import { adResponseIdSchema, publisherIdSchema } from "@adrelay/contract";
import type { JoinedTurn, Turns } from "@adrelay/store";
import { expect, test } from "vitest";
import { joinTurn } from "./join-turn.ts";

const JOINED: JoinedTurn = {
  kind: "joined",
  step: {
    id: adResponseIdSchema.parse("7f6d1e4e-2f5c-4d8e-9a51-0c2b7d9f3a10"),
    publisher: publisherIdSchema.parse("acme"),
    step: 2,
  },
  prompt: "with an ad",
};
const question = { pointers: ["body"], token: "t", isRetry: true, timeoutMs: 0 };

/** A turn that is joined only when the call has gone on without it. */
async function joinLate(endStep: Turns["endStep"]) {
  const pending: Promise<void>[] = [];
  const late = Promise.withResolvers<JoinedTurn>();
  const turns = { catchUp: async () => {}, join: () => late.promise, endStep };
  const deps = {
    turns,
    pending: { add: (work: Promise<void>) => void pending.push(work) },
    turnWaitMs: 5000,
  };
  expect(await joinTurn(deps, question)).toEqual({ kind: "unavailable" });
  late.resolve(JOINED);
  return Promise.allSettled(pending);
}

test("a turn that was joined too late is left to the next retry", async () => {
  const ended: unknown[] = [];
  const settled = await joinLate(async (step) => {
    ended.push(step);
    return "waiting";
  });
  expect(settled).toEqual([{ status: "fulfilled", value: undefined }]);
  expect(ended).toEqual([expect.objectContaining({ step: JOINED.step, waitMs: 5000, text: "" })]);
});

test("a next step has no turn if Redis doesn't catch up in time, and asks for none", async () => {
  const catchUps = [() => new Promise<void>(() => {}), () => Promise.reject(new TypeError("Redis is away"))];
  for (const catchUp of catchUps) {
    const join = () => expect.fail("Redis was asked");
    const deps = {
      turns: { catchUp, join, endStep: join },
      pending: { add: () => {} },
      turnWaitMs: 5000,
    };
    const found = await joinTurn(deps, { ...question, isRetry: false, timeoutMs: 10 });
    expect(found).toEqual({ kind: "unavailable" });
  }
});

test("a turn that can't be left, because Redis is away, is no failed work", async () => {
  const settled = await joinLate(() => Promise.reject(new TypeError("Redis is away")));
  expect(settled).toEqual([{ status: "fulfilled", value: undefined }]);
});

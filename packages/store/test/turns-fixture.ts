import { randomUUID } from "node:crypto";
import type { AdResponseId } from "@adrelay/contract";
import type { Redis } from "ioredis";
import { expect } from "vitest";
import type { EndedStep, FinalStep, HeldTurn, LedgerSnapshot, NewTurn, StepRef } from "../src/index.ts";
import type { StoreOptions } from "../src/open-store.ts";
import { newId, openTestStore, publisher } from "./store-fixture.ts";

export const LONG_WAIT_MS = 600_000;
export const DIALECT = "messages";

/** A store with what a proxy does, and with a hand on the clock of its leases. */
export function openTestTurns(redis: Redis, more: Partial<StoreOptions> = {}) {
  const fixture = openTestStore(redis, more);
  const { turns, key, parts } = fixture;
  const turnKey = (id: AdResponseId) => key(`awaiting:turn:${memberOf(id)}`);
  const newTurn = (id = newId(), given: Partial<NewTurn> = {}): NewTurn => ({
    kind: "journaled",
    id,
    publisher,
    dialect: DIALECT,
    token: `t${id}`,
    session: undefined,
    // The union's other arm is given whole.
    ...(given as object),
  });
  const open = async (id = newId()): Promise<StepRef> => {
    const opened = await turns.open(newTurn(id));
    expect(opened).toEqual({ kind: "opened", step: { id, publisher, step: 1 } });
    return { id, publisher, step: 1 };
  };
  const write = async (step: StepRef, sequence: number, text: string | undefined) => {
    const [answer] = await turns.write([{ step, sequence, text }]);
    return answer;
  };
  const settle = (step: StepRef, text = "", given: Partial<FinalStep> = {}) =>
    turns.settle({
      step,
      outcome: "complete",
      text,
      requestId: "request-1",
      traceparent: undefined,
      ...given,
    });
  const hold = (step: StepRef, pointer: string, given: Partial<HeldTurn> = {}) =>
    turns.hold({
      step,
      number: 1,
      prompt: "an enhanced prompt",
      pointers: [pointer],
      waitMs: LONG_WAIT_MS,
      awaits: "next_step",
      ...given,
    });
  const join = async (pointer: string, token: string = randomUUID()) => {
    const joined = await turns.join({ pointer, token });
    if (joined.kind !== "joined") {
      throw new TypeError(`the step wasn't joined: ${joined.kind}`);
    }
    return joined.step;
  };
  const endStep = (step: StepRef, given: Partial<EndedStep> = {}) =>
    turns.endStep({ step, sequence: 1, text: "", waitMs: LONG_WAIT_MS, outcome: "complete", ...given });
  /** As if so much time had passed for this turn. */
  const age = async (id: AdResponseId, ms: number) => {
    const member = memberOf(id);
    for (const [field, value] of Object.entries(await redis.hgetall(turnKey(id)))) {
      if (/^(l\d+|w)$/.test(field)) {
        await redis.hset(turnKey(id), field, Number(value) - ms);
      }
    }
    if ((await redis.zscore(key("awaiting"), member)) !== null) {
      await redis.zincrby(key("awaiting"), -ms, member);
    }
  };
  /** The text of the queued acknowledgment. */
  const queuedText = async (id: AdResponseId): Promise<string | undefined> => {
    const data = await redis.hget(parts.queue.payloadKey(id), "data");
    return data === null ? undefined : JSON.parse(JSON.parse(data).body).llm_response;
  };
  const stateOf = async (id: AdResponseId) => (await fixture.find(id))?.state ?? "absent";
  const keysOf = (id: AdResponseId) => redis.keys(key(`awaiting:*:${memberOf(id)}`));
  const turnsSwept = () => fixture.sweepMissed(100);
  return {
    ...fixture,
    turnKey,
    newTurn,
    open,
    write,
    settle,
    hold,
    join,
    endStep,
    age,
    queuedText,
    stateOf,
    keysOf,
    turnsSwept,
  };
}
export type TurnsFixture = ReturnType<typeof openTestTurns>;

function memberOf(id: AdResponseId): string {
  return id.replaceAll("-", "");
}

export interface TurnCounts {
  readonly opened: number;
  readonly open: number;
  /** By outcome. */
  readonly ended: Readonly<Record<string, number>>;
}

export function turnCounts({ totals, openTurns }: LedgerSnapshot): TurnCounts {
  const ended = (totals.get("turns") ?? []).map(({ label, value }) => [label.split(",")[1] ?? "", value]);
  return {
    opened: sumOf(totals.get("turns_opened")),
    open: sumOf(openTurns),
    ended: Object.fromEntries(ended),
  };
}

export function sumOf(counts: readonly { readonly value: number }[] | undefined): number {
  return (counts ?? []).reduce((sum, { value }) => sum + value, 0);
}

/** Turns opened are turns ended plus open ones, and what came into the ledger is in it. */
export function expectTurnBalance(snapshot: LedgerSnapshot): void {
  const { opened, open, ended } = turnCounts(snapshot);
  expect(Object.values(ended).reduce((sum, value) => sum + value, open)).toBe(opened);
  const { totals, states } = snapshot;
  const came = sumOf((totals.get("recorded") ?? []).filter(({ label }) => label === "ok"));
  expect(sumOf(states)).toBe(came + sumOf(totals.get("unknown")) - sumOf(totals.get("abandoned")));
  expect(sumOf(totals.get("missed"))).toBe(0);
}

/**
 * Turns on a real Redis: the scripts against the rules of core, repeats, and who ends a turn. They guard against an ad that is
 * missed although its proxy lives or has written a text, against an acknowledgment that is queued twice, and against a turn
 * that stays for ever.
 */
import { randomUUID } from "node:crypto";
import { publisherIdSchema } from "@adrelay/contract";
import {
  decideTurn,
  TURN_EVENTS,
  type TurnEvent,
  type TurnTransition,
  type TurnView,
  UNKNOWN_FINDING,
} from "@adrelay/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NO_LIMITS, type StepRef, TURN_LEASE_MS, TURN_TEXT_MAX_BYTES } from "../src/index.ts";
import { TurnSettler } from "../src/journal/turn-settler.ts";
import { setRedisClockBack } from "./redis-clock.ts";
import { jobOf, newId, openTestRedis, publisher } from "./store-fixture.ts";
import {
  DIALECT,
  expectTurnBalance,
  LONG_WAIT_MS,
  openTestTurns,
  sumOf,
  type TurnsFixture,
  turnCounts,
} from "./turns-fixture.ts";

const { redis } = await openTestRedis();
const setup = () => openTestTurns(redis);
const OPEN_RULES = { acceptsUnknown: true, limits: NO_LIMITS };
const PAST_LEASE_MS = TURN_LEASE_MS + 1000;
const otherPublisher = publisherIdSchema.parse("other");
const LONG_PROMPT = "x".repeat(100_000);

describe("a turn of one step", () => {
  test("is acknowledged with what its step has written, whatever was appended before", async () => {
    const fixture = setup();
    const { open, write, settle, queuedText, find, keysOf, snapshot } = fixture;
    const step = await open();
    expect(await write(step, 1, "Try Fizz")).toBe("alive");
    expect(turnCounts(await snapshot())).toEqual({ opened: 1, open: 1, ended: {} });
    expect(await find(step.id)).toMatchObject({ state: "awaiting", turn: { dialect: DIALECT, steps: 1 } });
    expect(await settle(step, "Try Fizzwater.")).toBe("queued");
    expect(await queuedText(step.id)).toBe("Try Fizzwater.");
    expect(await find(step.id)).toMatchObject({ state: "queued", isLate: false, hasTurn: true });
    expect(await keysOf(step.id)).toEqual([]);
    expect(await settle(step, "Try Fizzwater.")).toBe("ended");
    expect(await write(step, 2, "more")).toBe("ended");
    const after = await snapshot();
    expect(turnCounts(after)).toEqual({ opened: 1, open: 0, ended: { complete: 1 } });
    expect(after.totals.get("accepted")).toMatchObject([{ value: 1 }]);
    expectTurnBalance(after);
  });

  test("whose proxy is gone is acknowledged by the sweep with the journal's text", async () => {
    const fixture = setup();
    const { open, write, age, turnsSwept, queuedText, snapshot, stateOf } = fixture;
    const step = await open();
    await write(step, 1, "Try ");
    await write(step, 2, "Fizz");
    await turnsSwept();
    expect(await stateOf(step.id)).toBe("awaiting");
    await age(step.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(step.id)).toBe("Try Fizz");
    const after = await snapshot();
    expect(turnCounts(after)).toEqual({ opened: 1, open: 0, ended: { orphaned: 1 } });
    expectTurnBalance(after);
  });

  test("that wrote nothing is acknowledged with an empty text", async () => {
    const { open, age, turnsSwept, queuedText } = setup();
    const step = await open();
    await age(step.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(step.id)).toBe("");
  });

  test("is settled once by many workers at once", async () => {
    const fixture = setup();
    const { open, age, parts, snapshot, queueDepths } = fixture;
    const steps = await Promise.all(Array.from({ length: 30 }, () => open()));
    await Promise.all(steps.map(({ id }) => age(id, PAST_LEASE_MS)));
    await Promise.all(Array.from({ length: 10 }, () => fixture.sweepMissed(7)));
    await Promise.all(steps.map(({ id }) => parts.dueTurns.settleAll([id, id])));
    const after = await snapshot();
    expect(turnCounts(after)).toEqual({ opened: 30, open: 0, ended: { orphaned: 30 } });
    expect(after.totals.get("accepted")).toMatchObject([{ value: 30 }]);
    expect(await queueDepths()).toMatchObject({ waiting: 30 });
    expectTurnBalance(after);
  });

  test("is never missed while its lease is renewed, however long it runs", async () => {
    const { open, write, age, turnsSwept, stateOf, snapshot } = setup();
    const step = await open();
    for (let second = 0; second < 20; second += 1) {
      await age(step.id, TURN_LEASE_MS - 1000);
      await turnsSwept();
      expect(await write(step, second, undefined)).toBe("alive");
    }
    expect(await stateOf(step.id)).toBe("awaiting");
    expectTurnBalance(await snapshot());
  });

  test("which was slow runs on if the sweep hasn't settled it yet", async () => {
    const { open, write, age, turnsSwept, stateOf } = setup();
    const step = await open();
    await age(step.id, PAST_LEASE_MS);
    expect(await write(step, 1, "late")).toBe("alive");
    await turnsSwept();
    expect(await stateOf(step.id)).toBe("awaiting");
  });
});

test("a turn that a worker claimed and didn't settle comes up again", async () => {
  const { open, age, parts, queuedText, turnsSwept } = setup();
  const step = await open();
  await age(step.id, PAST_LEASE_MS);
  const { run, keys } = parts;
  const sweepArgs = ["miss", 100, 1000, keys.entryPrefix, 0];
  const claim = () =>
    run("maintenance/sweep", { keys: [...keys.forEntry(""), keys.heartbeat], args: sweepArgs });
  expect(await claim()).toEqual([1, 1, step.id.replaceAll("-", "")]);
  expect(await claim()).toEqual([0, 0]);
  await age(step.id, 6000);
  await turnsSwept();
  expect(await queuedText(step.id)).toBe("");
});

/** A turn of which the event's step is `step`. In `none` it is one that was never opened. */
interface Met {
  readonly view: TurnView;
  readonly step: StepRef;
}

/** How a turn comes into each view. */
const VIEWS: Readonly<Record<string, (fixture: TurnsFixture) => Promise<Met>>> = {
  none: () => Promise.resolve({ view: { kind: "none" }, step: { id: newId(), publisher, step: 1 } }),
  "running alone": async ({ open, hold }) => {
    const step = await open();
    await hold(step, `by ${step.id}`, { waitMs: 0 });
    return { view: { kind: "running", otherLeases: 0 }, step };
  },
  "running beside another step": async ({ open, hold, join }) => {
    const step = await open();
    await hold(step, `by ${step.id}`);
    await join(`by ${step.id}`);
    return { view: { kind: "running", otherLeases: 1 }, step };
  },
  waiting: async ({ open, hold, age }) => {
    const step = await open();
    await hold(step, `by ${step.id}`);
    await age(step.id, PAST_LEASE_MS);
    return { view: { kind: "waiting", isOver: false }, step };
  },
  due: async ({ open, hold, age }) => {
    const step = await open();
    await hold(step, `by ${step.id}`);
    await age(step.id, LONG_WAIT_MS + 1000);
    return { view: { kind: "waiting", isOver: true }, step };
  },
};

/** Carries an event out, as the proxy and the worker do. */
async function fireTurn(fixture: TurnsFixture, step: StepRef, event: TurnEvent): Promise<unknown> {
  const { turns, newTurn, write, endStep, settle, turnsSwept } = fixture;
  switch (event) {
    case "open":
      return turns.open({ ...newTurn(step.id), token: "another" });
    case "join":
      return turns.join({ pointer: `by ${step.id}`, token: randomUUID() });
    case "write":
      return write(step, 1, "text");
    case "end_step":
      return endStep(step);
    case "final":
      return settle(step, "text");
    case "due":
      return turnsSwept();
    default:
      return event satisfies never;
  }
}

async function whatBecame(
  { turnKey, stateOf }: TurnsFixture,
  { step: { id } }: Met,
  before: object,
): Promise<TurnTransition> {
  const after = await redis.hgetall(turnKey(id));
  if (JSON.stringify(after) === JSON.stringify(before)) {
    return "refused";
  }
  if (Object.keys(after).length === 0) {
    return (await stateOf(id)) === "queued" ? "ended" : "refused";
  }
  const [seconds] = await redis.time();
  const leases = Object.entries(after).filter(([field]) => /^l\d+$/.test(field));
  return leases.some(([, until]) => Number(until) > Number(seconds) * 1000) ? "running" : "waiting";
}

test.each(Object.keys(VIEWS).flatMap((view) => TURN_EVENTS.map((event) => [view, event] as const)))(
  "in a turn that is %s the event %s follows the rules of core",
  async (view, event) => {
    const fixture = setup();
    const met = (await VIEWS[view]?.(fixture)) ?? expect.fail("no such view");
    const before = await redis.hgetall(fixture.turnKey(met.step.id));
    await fireTurn(fixture, met.step, event);
    expect(await whatBecame(fixture, met, before)).toBe(decideTurn(met.view, event));
    const snapshot = await fixture.snapshot();
    expectTurnBalance(snapshot);
    expect(turnCounts(snapshot).open).toBe((await redis.keys(fixture.key("awaiting:turn:*"))).length);
  },
);

describe("a repeated call changes nothing", () => {
  test("of an opening with the same token, and another token learns that the id is known", async () => {
    const { turns, newTurn, snapshot } = setup();
    const turn = newTurn();
    const opened = [await turns.open(turn), await turns.open(turn)];
    expect(opened[1]).toEqual(opened[0]);
    expect(await turns.open({ ...turn, token: "another" })).toEqual({ kind: "known" });
    expect(turnCounts(await snapshot())).toMatchObject({ opened: 1, open: 1 });
  });

  test("of a write, but for the lease", async () => {
    const { open, write, age, turnsSwept, queuedText } = setup();
    const step = await open();
    for (const [sequence, text] of [
      [1, "a"],
      [2, "b"],
      [2, "b"],
      [1, "a"],
      [3, "c"],
    ] as const) {
      expect(await write(step, sequence, text)).toBe("alive");
    }
    await age(step.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(step.id)).toBe("abc");
  });

  test("of a step that joins with the same token", async () => {
    const { open, hold, turns, snapshot } = setup();
    const first = await open();
    await hold(first, "call 1");
    await hold(first, "call 1");
    const joined = [1, 2].map(() => turns.join({ pointer: "call 1", token: "token" }));
    const step = { ...first, step: 2 };
    expect(await Promise.all(joined)).toEqual(
      [1, 2].map(() => ({ kind: "joined", step, prompt: "an enhanced prompt" })),
    );
    expect(await turns.join({ pointer: "call 1", token: "another" })).toMatchObject({ step: { step: 3 } });
    expectTurnBalance(await snapshot());
  });

  test("of a hold, also after a later step has joined and ended", async () => {
    const { open, hold, join, endStep, settle } = setup();
    const first = await open();
    await hold(first, "call 1");
    const second = await join("call 1");
    expect(await settle(second, "Done.")).toBe("open");
    expect(await hold(first, "call 1")).toBe("held");
    expect(await endStep(first, { text: "Let me look." })).toBe("ended");
  });

  test("of a step's end, also after a later step has begun", async () => {
    const { open, hold, join, endStep, settle, queuedText, write, turnKey } = setup();
    const first = await open();
    await hold(first, "call 1");
    await write(first, 1, "Let me look.");
    const end = () => endStep(first, { sequence: 2, text: " Now" });
    expect(await end()).toBe("waiting");
    const second = await join("call 1");
    const running = await redis.hgetall(turnKey(first.id));
    expect(await end()).toBe("waiting");
    expect(await write(first, 1, "Let me look.")).toBe("alive");
    expect(await redis.hgetall(turnKey(first.id))).toEqual(running);
    expect(await settle(second, "Done.")).toBe("queued");
    expect(await queuedText(first.id)).toBe("Let me look. Now\n\nDone.");
    expect(await end()).toBe("ended");
  });
});

describe("a turn of several steps", () => {
  test("that waits in vain is settled with the outcome of its last step", async () => {
    const { open, hold, endStep, age, turnsSwept, queuedText, stateOf, snapshot } = setup();
    const step = await open();
    await hold(step, "call 1");
    await endStep(step, { text: "Let me look.", outcome: "cut" });
    await age(step.id, LONG_WAIT_MS - 1000);
    await turnsSwept();
    expect(await stateOf(step.id)).toBe("awaiting");
    await age(step.id, 2000);
    await turnsSwept();
    expect(await queuedText(step.id)).toBe("Let me look.");
    expect(turnCounts(await snapshot()).ended).toEqual({ cut: 1 });
  });

  test("whose next step's proxy is gone waits for nothing but its lease", async () => {
    const { open, hold, endStep, join, write, age, turnsSwept, queuedText, snapshot } = setup();
    const first = await open();
    await hold(first, "call 1");
    await endStep(first, { text: "Let me look." });
    await write(await join("call 1"), 1, "It");
    await age(first.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(first.id)).toBe("Let me look.\n\nIt");
    expect(turnCounts(await snapshot()).ended).toEqual({ orphaned: 1 });
  });

  test("that is held isn't looked at before its wait is over, also if a step writes meanwhile", async () => {
    const { open, hold, write, age, turnsSwept } = setup();
    const step = await open();
    await hold(step, "call 1");
    await write(step, 1, "Let me look.");
    await age(step.id, PAST_LEASE_MS);
    expect(await turnsSwept()).toBe(0);
    await age(step.id, LONG_WAIT_MS);
    expect(await turnsSwept()).toBe(1);
  });

  test("is settled by the last of two steps that run at once, whichever ends first", async () => {
    const { open, hold, join, settle, queuedText, snapshot } = setup();
    const first = await open();
    await hold(first, "call 1");
    const second = await join("call 1");
    const results = await Promise.all([settle(first, "One."), settle(second, "Two.")]);
    expect(results.toSorted()).toEqual(["open", "queued"]);
    expect(await queuedText(first.id)).toBe("One.\n\nTwo.");
    expectTurnBalance(await snapshot());
  });

  test("doesn't wait after a step whose calls a final step has answered meanwhile", async () => {
    const { open, hold, join, settle, endStep, turnsSwept, queuedText, snapshot } = setup();
    const first = await open();
    await hold(first, "call 1");
    const second = await join("call 1");
    expect(await settle(second, "Two.")).toBe("open");
    expect(await endStep(first, { text: "One.", outcome: "cut" })).toBe("ended");
    await turnsSwept();
    expect(await queuedText(first.id)).toBe("One.\n\nTwo.");
    expect(turnCounts(await snapshot()).ended).toEqual({ complete: 1 });
  });

  test("is settled by the proxy of an overtaken step with the outcome of the final one", async () => {
    const { open, hold, join, settle, endStep, queuedText, snapshot } = setup();
    const first = await open();
    await hold(first, "call 1");
    await settle(await join("call 1"), "Two.");
    await endStep(first, { text: "One.", outcome: "cut" });
    expect(await settle(first, "One.", { outcome: "cut" })).toBe("queued");
    expect(await queuedText(first.id)).toBe("One.\n\nTwo.");
    expect(turnCounts(await snapshot()).ended).toEqual({ complete: 1 });
  });

  test("waits for a step that came after a final one and calls a tool", async () => {
    const { open, hold, join, settle, endStep, turnsSwept, stateOf } = setup();
    const first = await open();
    await hold(first, "call 1");
    await settle(await join("call 1"), "Two.");
    const third = await join("call 1");
    expect(await endStep(first, { text: "One." })).toBe("waiting");
    expect(await endStep(third, { text: "Three." })).toBe("waiting");
    expect(await endStep(first, { text: "One." })).toBe("waiting");
    await turnsSwept();
    expect(await stateOf(first.id)).toBe("awaiting");
  });

  test("keeps the text of a step that ended while another one's proxy was gone", async () => {
    const { open, hold, join, write, settle, age, turnsSwept, queuedText, snapshot } = setup();
    const first = await open();
    await write(first, 1, "Lost");
    await hold(first, "again", { waitMs: 0 });
    const second = await join("again");
    await write(second, 1, "Part");
    expect(await settle(second, "Partial answer.")).toBe("open");
    await age(first.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(first.id)).toBe("Lost\n\nPartial answer.");
    expect(turnCounts(await snapshot()).ended).toEqual({ orphaned: 1 });
  });

  test("is read again if another step writes between the reading and the settling", async () => {
    const { open, hold, join, endStep, parts, queuedText } = setup();
    const first = await open();
    await hold(first, "call 1");
    const second = await join("call 1");
    const readings: number[] = [];
    const lrange = async (key: string, from: number, to: number) => {
      const pieces = await redis.lrange(key, from, to);
      readings.push(pieces.length);
      await endStep(first, { text: "One." });
      return pieces;
    };
    const between = Object.assign(Object.create(redis), { lrange });
    const findAd = async () => UNKNOWN_FINDING;
    const settler = new TurnSettler({
      ...parts,
      redis: between,
      rulesOf: () => OPEN_RULES,
      findAd,
    });
    const own = { ...second, outcome: "complete", text: "Two.", finding: undefined } as const;
    expect(await settler.settle({ id: first.id, requestId: "r", traceparent: undefined, own })).toBe(
      "queued",
    );
    expect(readings).toEqual([0, 1]);
    expect(await queuedText(first.id)).toBe("One.\n\nTwo.");
  });

  test("of which another step runs is unknown to a retry, and known to its own token", async () => {
    const { open, hold, turns, endStep } = setup();
    const step = await open();
    await hold(step, "again", { awaits: "retry" });
    const retry = (token: string) => turns.join({ pointer: "again", token, isRetry: true });
    expect(await retry("a")).toEqual({ kind: "unknown" });
    await endStep(step);
    expect(await retry("a")).toMatchObject({ kind: "joined", step: { step: 2 } });
    expect(await retry("a")).toMatchObject({ kind: "joined", step: { step: 2 } });
    expect(await retry("b")).toEqual({ kind: "unknown" });
  });

  test("is unknown to a second retry once the first one has called a tool", async () => {
    const { open, hold, turns, endStep, join } = setup();
    const step = await open();
    await hold(step, "again", { awaits: "retry" });
    await endStep(step);
    const retry = () => turns.join({ pointer: "again", token: randomUUID(), isRetry: true });
    const joined = await retry();
    const second = joined.kind === "joined" ? joined.step : expect.fail(joined.kind);
    await hold(second, "call 1");
    await endStep(second);
    expect(await retry()).toEqual({ kind: "unknown" });
    expect((await join("call 1")).step).toBe(3);
  });

  test("waits for nothing but the lease of its next step, also if that one joined before this one's end", async () => {
    const { open, hold, join, write, endStep, age, turnsSwept, queuedText } = setup();
    const first = await open();
    await write(first, 1, "One.");
    await hold(first, "call 1");
    const second = await join("call 1");
    expect(await endStep(first, { sequence: 2 })).toBe("waiting");
    await write(second, 1, "Two");
    await age(first.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(first.id)).toBe("One.\n\nTwo");
  });

  describe("of which Redis has lost that its next step joined", () => {
    async function loseJoin() {
      const fixture = setup();
      const { open, hold, join, write, turnKey } = fixture;
      const first = await open();
      await write(first, 1, "One.");
      await hold(first, "call 1");
      const second = await join("call 1");
      const token = Object.keys(await redis.hgetall(turnKey(first.id))).find((field) => /^k.*-/.test(field));
      await redis.hdel(turnKey(first.id), "l2", token ?? expect.fail("there is no token"));
      await redis.hset(turnKey(first.id), "n", 1);
      const sweepLater = async () => {
        await fixture.age(first.id, LONG_WAIT_MS + PAST_LEASE_MS);
        await fixture.turnsSwept();
        return fixture.queuedText(first.id);
      };
      return { ...fixture, second, sweepLater };
    }

    test("has all of its text once it is final", async () => {
      const { settle, second, sweepLater } = await loseJoin();
      await settle(second, "Two.");
      expect(await sweepLater()).toBe("One.\n\nTwo.");
    });

    test("has all of its text if it waits for another step", async () => {
      const { endStep, second, sweepLater } = await loseJoin();
      expect(await endStep(second, { sequence: 3, text: "o." })).toBe("behind");
      expect(await endStep(second, { sequence: "=", text: "Two." })).toBe("waiting");
      expect(await sweepLater()).toBe("One.\n\nTwo.");
    });

    test("is told that it is behind, or goes on if nothing is missing", async () => {
      const lost = await loseJoin();
      expect(await lost.write(lost.second, 2, "o.")).toBe("behind");
      const none = await loseJoin();
      expect(await none.write(none.second, 1, "Two.")).toBe("alive");
      expect(await none.sweepLater()).toBe("One.\n\nTwo.");
    });
  });

  test("can't be joined once it is over, nor by a pointer that nobody set", async () => {
    const { open, hold, turns, settle } = setup();
    const step = await open();
    await hold(step, "call 1");
    await settle(step, "Done.");
    expect(await turns.join({ pointer: "call 1", token: "t" })).toEqual({ kind: "ended" });
    expect(await turns.join({ pointer: "call 2", token: "t" })).toEqual({ kind: "unknown" });
    expect(await hold(step, "call 3")).toBe("ended");
  });
});

describe("a backend that acknowledges the id of a turn by itself", () => {
  test("ends the turn if it is first, and the proxy learns it", async () => {
    const { open, write, settle, acknowledgments, keysOf, snapshot, endStep } = setup();
    const step = await open();
    await write(step, 1, "Try");
    const accepted = await acknowledgments.accept({ job: jobOf(step.id), textHash: "hash" });
    expect(accepted).toMatchObject({ kind: "accepted" });
    expect(await keysOf(step.id)).toEqual([]);
    expect(await write(step, 2, "more")).toBe("ended");
    expect(await endStep(step)).toBe("ended");
    expect(await settle(step, "Try more")).toBe("ended");
    const after = await snapshot();
    expect(turnCounts(after)).toEqual({ opened: 1, open: 0, ended: { superseded: 1 } });
    expectTurnBalance(after);
  });

  test("is told how it stands if it is second, whatever its text", async () => {
    const { open, settle, acknowledgments, queuedText } = setup();
    const step = await open();
    await settle(step, "Try Fizzwater.");
    const accepted = await acknowledgments.accept({ job: jobOf(step.id), textHash: "another" });
    expect(accepted).toMatchObject({ kind: "repeat", entry: { state: "queued" } });
    expect(await queuedText(step.id)).toBe("Try Fizzwater.");
  });

  test("and whose job an older version queued without booking it has it booked by a worker", async () => {
    const { open, settle, begin, snapshot, stateOf, parts } = setup();
    const step = await open();
    await redis.hset(parts.queue.payloadKey(step.id), "name", "theirs", "data", "{}");
    expect(await settle(step, "Try Fizzwater.")).toBe("ended");
    expect(await stateOf(step.id)).toBe("awaiting");
    expect(await begin(step.id, "theirs")).toMatchObject({ kind: "queued" });
    expect(await redis.hget(parts.queue.payloadKey(step.id), "data")).toBe("{}");
    expect(turnCounts(await snapshot()).ended).toEqual({ superseded: 1 });
  });

  test("for another publisher is refused, and the turn goes on", async () => {
    const { open, acknowledgments, write } = setup();
    const step = await open();
    const job = { ...jobOf(step.id), publisher: publisherIdSchema.parse("theirs") };
    expect(await acknowledgments.accept({ job, textHash: "hash" })).toEqual({ kind: "other_publisher" });
    expect(await write(step, 1, "Try")).toBe("alive");
  });

  test("in manual mode has a plain injection, whose turn is over at once", async () => {
    const { turns, newTurn, acknowledgments, find, snapshot, write, turnsSwept } = setup();
    const id = newId();
    const turn = newTurn(id, { kind: "manual", deadlineMs: 0 });
    const opened = await turns.open(turn);
    expect(await turns.open(turn)).toEqual(opened);
    expect(await turns.open({ ...turn, token: "another" })).toEqual({ kind: "known" });
    expect(await write({ id, publisher, step: 1 }, 1, "x")).toBe("ended");
    expect(await find(id)).toMatchObject({ state: "awaiting", hasTurn: false });
    const counts = turnCounts(await snapshot());
    expect(counts).toEqual({ opened: 1, open: 0, ended: { manual: 1 } });
    await turnsSwept();
    expect(await find(id)).toMatchObject({ state: "missed" });
    const accept = (textHash: string) => acknowledgments.accept({ job: jobOf(id), textHash });
    expect(await accept("hash")).toMatchObject({ kind: "accepted_late" });
    expect(await accept("another")).toEqual({ kind: "conflict" });
  });

  test("in manual mode is acknowledged empty if the proxy says that its backend got no text", async () => {
    const fixture = setup();
    const { turns, newTurn, acknowledgments, find, snapshot, settle, queuedText } = fixture;
    const id = newId();
    await turns.open(newTurn(id, { kind: "manual", deadlineMs: LONG_WAIT_MS }));
    const step = { id, publisher, step: 1 };
    expect(await settle(step)).toBe("queued");
    expect(await settle(step)).toBe("ended");
    expect(await queuedText(id)).toBe("");
    expect(await find(id)).toMatchObject({ state: "queued", isLate: false });
    // The backend acknowledges nevertheless, and is told how it stands.
    const answer = await acknowledgments.accept({ job: jobOf(id), textHash: "another" });
    expect(answer).toMatchObject({ kind: "repeat" });
    const after = await snapshot();
    expect(turnCounts(after)).toEqual({ opened: 1, open: 0, ended: { manual: 1 } });
    expectTurnBalance(after);
  });

  test("in manual mode stays the backend's if it was first", async () => {
    const { turns, newTurn, acknowledgments, settle, queuedText } = setup();
    const id = newId();
    await turns.open(newTurn(id, { kind: "manual", deadlineMs: LONG_WAIT_MS }));
    await acknowledgments.accept({ job: jobOf(id), textHash: "hash" });
    const text = await queuedText(id);
    expect(await settle({ id, publisher, step: 1 })).toBe("ended");
    expect(await queuedText(id)).toBe(text);
  });

  test("in manual mode without text is abandoned if its publisher's empty answers are", async () => {
    const fixture = openTestTurns(redis, {
      intakeRules: () => ({ ...OPEN_RULES, emptyAnswers: "abandon" }),
    });
    const { turns, newTurn, settle, find, snapshot } = fixture;
    const id = newId();
    await turns.open(newTurn(id, { kind: "manual", deadlineMs: LONG_WAIT_MS }));
    expect(await settle({ id, publisher, step: 1 })).toBe("abandoned");
    expect(await find(id)).toMatchObject({ state: "abandoned" });
    expectTurnBalance(await snapshot());
  });
});

describe("what Redis has or takes", () => {
  test("a fault of one turn's text leaves the other writes of the call alone", async () => {
    const { open, turns, key, queuedText, settle } = setup();
    const [well, broken, other] = [await open(), await open(), await open()];
    await redis.set(key(`awaiting:text:${broken.id.replaceAll("-", "")}`), "no list");
    const writes = [well, broken, other].map((step) => ({ step, sequence: 1, text: "Try" }));
    const [first, second, third] = await turns.write(writes);
    expect([first, third]).toEqual(["alive", "alive"]);
    expect(second).toBeInstanceOf(Error);
    expect(String(second)).toContain("WRONGTYPE");
    expect(await settle(broken, "Try")).toBe("queued");
    expect(await queuedText(broken.id)).toBe("Try");
  });

  test("a full Redis opens no turn, and lets all that are open end", async () => {
    const {
      open,
      hold,
      join,
      write,
      endStep,
      settle,
      age,
      turnsSwept,
      turns,
      newTurn,
      queuedText,
      snapshot,
    } = setup();
    const steps = [await open(), await open()] as const;
    await age(steps[1].id, PAST_LEASE_MS);
    await redis.config("SET", "maxmemory", "1");
    try {
      await expect(turns.open(newTurn())).rejects.toThrow("OOM");
      expect(await write(steps[0], 1, "Let me look.")).toBe("alive");
      expect(await hold(steps[0], "call 1")).toBe("held");
      expect(await endStep(steps[0])).toBe("waiting");
      expect(await settle(await join("call 1"), "Done.")).toBe("queued");
      await turnsSwept();
    } finally {
      await redis.config("SET", "maxmemory", "0");
    }
    expect(await queuedText(steps[0].id)).toBe("Let me look.\n\nDone.");
    expect(await queuedText(steps[1].id)).toBe("");
    expectTurnBalance(await snapshot());
  });

  test("no quota refuses the acknowledgment of a turn", async () => {
    const limits = { ...NO_LIMITS, queued_bytes: 1 };
    const { open, settle, acknowledgments } = openTestTurns(redis, {
      intakeRules: () => ({ acceptsUnknown: true, limits }),
    });
    const [one, other] = [await open(), await open()];
    expect(await settle(one, "One.")).toBe("queued");
    expect(await settle(other, "Two.")).toBe("queued");
    const { id } = await open();
    expect(await acknowledgments.accept({ job: jobOf(id), textHash: "h" })).toMatchObject({
      kind: "over_quota",
    });
  });

  test("the journal of a turn has a bound, and keeps the beginning", async () => {
    const { open, write, age, turnsSwept, queuedText } = setup();
    const step = await open();
    const part = "x".repeat(TURN_TEXT_MAX_BYTES / 2);
    await write(step, 1, part);
    await write(step, 2, part);
    await write(step, 3, "too much");
    await write(step, 4, "");
    await age(step.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(step.id)).toBe(part + part);
  });

  test("a step whose earlier pieces Redis has lost appends no more, and ends with its whole text", async () => {
    const { open, hold, write, endStep, age, turnsSwept, queuedText, turnKey, key, snapshot } = setup();
    const step = await open();
    await hold(step, "call 1");
    await write(step, 1, "Let me ");
    await write(step, 2, "look ");
    const textKey = key(`awaiting:text:${step.id.replaceAll("-", "")}`);
    await redis.rpop(textKey);
    await redis.hset(turnKey(step.id), "s1", 1);
    await age(step.id, 1000);
    const lease = await redis.hget(turnKey(step.id), "l1");
    expect(await write(step, 3, "closely.")).toBe("behind");
    expect(Number(await redis.hget(turnKey(step.id), "l1"))).toBeGreaterThan(Number(lease));
    expect(await endStep(step, { sequence: 3, text: "closely." })).toBe("behind");
    expect(await redis.lrange(textKey, 0, -1)).toEqual(["1,1,Let me "]);
    const whole = { sequence: "=", text: "Let me look closely." } as const;
    expect(await endStep(step, whole)).toBe("waiting");
    expect(await endStep(step, whole)).toBe("waiting");
    expect(await redis.llen(textKey)).toBe(2);
    await age(step.id, PAST_LEASE_MS);
    expect(await turnsSwept()).toBe(0);
    await age(step.id, LONG_WAIT_MS);
    await turnsSwept();
    expect(await queuedText(step.id)).toBe("Let me look closely.");
    expect(turnCounts(await snapshot()).ended).toEqual({ complete: 1 });
  });

  test("a turn with a very long prompt waits without being joinable", async () => {
    const { open, turns, stateOf } = setup();
    const step = await open();
    const prompt = "x".repeat(1024 * 1024 + 1);
    const held = { step, number: 1, prompt, pointers: ["long"], waitMs: 1000, awaits: "next_step" } as const;
    expect(await turns.hold(held)).toBe("bare");
    expect(await turns.join({ pointer: "long", token: "t" })).toEqual({ kind: "unknown" });
    expect(await stateOf(step.id)).toBe("awaiting");
  });

  test("the prompts of one publisher's open turns have a limit, and leave room for others", async () => {
    const { open, settle, turns, newTurn, age, turnsSwept, parts, key } = setup();
    // A share of 5 %: room for three.
    await redis.config("SET", "maxmemory", String(20 * 3 * LONG_PROMPT.length));
    await parts.room.refresh();
    await redis.config("SET", "maxmemory", "0");
    const ask = (step: StepRef, pointer: string) =>
      turns.hold({
        step,
        number: 1,
        prompt: LONG_PROMPT,
        pointers: [pointer],
        waitMs: 1000,
        awaits: "retry",
      });
    const kindOfJoin = async (pointer: string) => (await turns.join({ pointer, token: randomUUID() })).kind;
    const [first, second, third, fourth] = [await open(), await open(), await open(), await open()];
    expect(await ask(first, "first")).toBe("held");
    expect(await ask(second, "second")).toBe("held");
    expect(await ask(third, "third")).toBe("held");
    expect(await ask(fourth, "fourth")).toBe("bare");
    // The same hold again takes no more room.
    expect(await ask(first, "first")).toBe("held");
    expect([await kindOfJoin("third"), await kindOfJoin("fourth")]).toEqual(["joined", "unknown"]);

    const { id } = newTurn();
    await turns.open(newTurn(id, { publisher: otherPublisher }));
    expect(await ask({ id, publisher: otherPublisher, step: 1 }, "other")).toBe("held");

    // However a turn ends, its prompt gives its room back.
    await settle(first, "text");
    expect(await ask(fourth, "fourth")).toBe("held");
    await Promise.all([second, third, fourth].map((step) => age(step.id, LONG_WAIT_MS + PAST_LEASE_MS)));
    await turnsSwept();
    const left = await redis.hgetall(key("awaiting:prompt-bytes"));
    expect(left).toEqual({ [otherPublisher]: String(LONG_PROMPT.length) });
  });

  test("a piece that can't be read is left out and counted", async () => {
    const { open, write, age, turnsSwept, queuedText, snapshot, key } = setup();
    const step = await open();
    await write(step, 1, "Try ");
    await redis.rpush(key(`awaiting:text:${step.id.replaceAll("-", "")}`), "nonsense");
    await write(step, 2, "it");
    await age(step.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await queuedText(step.id)).toBe("Try it");
    expect(sumOf((await snapshot()).totals.get("turns_unreadable"))).toBe(1);
  });

  test("after a loss of data the turn's acknowledgment is one of an unknown id", async () => {
    const { open, settle, queuedText, key, snapshot, stateOf } = setup();
    const step = await open();
    await redis.del(await redis.keys(key("*")));
    expect(await settle({ ...step, step: 2 }, "Try it")).toBe("queued");
    expect(await queuedText(step.id)).toBe("Try it");
    expect(await stateOf(step.id)).toBe("queued");
    expectTurnBalance(await snapshot());
  });

  test.each([60_000, 86_400_000])(
    "a step of Redis' clock back by %d ms delays no end by more than a lease",
    async (stepMs) => {
      const { open, hold, endStep, maintenance, partition, age, queuedText, stateOf } = setup();
      const [running, waiting] = [await open(), await open()];
      await hold(waiting, "call 1");
      await endStep(waiting, { text: "Let me look." });
      await setRedisClockBack(redis, partition, stepMs);
      await maintenance.sweep(LONG_WAIT_MS);
      expect(await stateOf(running.id)).toBe("awaiting");
      await age(running.id, PAST_LEASE_MS);
      await age(waiting.id, LONG_WAIT_MS - 1000);
      await maintenance.sweep(LONG_WAIT_MS);
      expect(await queuedText(running.id)).toBe("");
      expect(await stateOf(waiting.id)).toBe("awaiting");
      await age(waiting.id, 2000);
      await maintenance.sweep(LONG_WAIT_MS);
      expect(await queuedText(waiting.id)).toBe("Let me look.");
    },
  );

  test("no turn is settled until Redis has answered for a lease without a break", async () => {
    const { open, age, turnsSwept, stateOf, key } = openTestTurns(redis, { turnGraceMs: TURN_LEASE_MS });
    const step = await open();
    const heartbeats = async (steadyForMs: number) => {
      const [seconds] = await redis.time();
      const now = Number(seconds) * 1000;
      await redis.hset(key("heartbeat"), "at", now, "steady", now - steadyForMs);
    };
    await age(step.id, PAST_LEASE_MS);
    await turnsSwept();
    expect(await stateOf(step.id)).toBe("awaiting");
    await age(step.id, 6000);
    await heartbeats(TURN_LEASE_MS - 2000);
    await turnsSwept();
    expect(await stateOf(step.id)).toBe("awaiting");
    await age(step.id, 6000);
    await heartbeats(TURN_LEASE_MS + 2000);
    await turnsSwept();
    expect(await stateOf(step.id)).toBe("queued");
  });
});

test("a turn whose publisher is adopted is settled for the new one, and balances for the old one", async () => {
  const { open, settle, adoptions, snapshot, find } = setup();
  const to = publisherIdSchema.parse("heirs");
  const step = await open();
  await adoptions.adoptBatch({
    from: publisher,
    to,
    by: "alice",
    limit: 10,
    place: { state: "awaiting", after: undefined },
  });
  expect(await settle(step, "Done.")).toBe("queued");
  expect(await find(step.id)).toMatchObject({ publisher: to, state: "queued" });
  const after = await snapshot();
  expect(after.openTurns).toEqual([]);
  expect(after.totals.get("turns")).toEqual([{ publisher, label: `${DIALECT},complete`, value: 1 }]);
});

describe("a publisher whose empty answers are abandoned", () => {
  const abandoning = () =>
    openTestTurns(redis, {
      intakeRules: () => ({ acceptsUnknown: true, limits: NO_LIMITS, emptyAnswers: "abandon" }),
    });

  test("has a turn without any text end as abandoned, on both sides of the balance", async () => {
    const { open, settle, age, turnsSwept, stateOf, snapshot, acknowledgments, queueDepths } = abandoning();
    const [ended, orphaned] = [await open(), await open()];
    expect(await settle(ended, "")).toBe("abandoned");
    await age(orphaned.id, PAST_LEASE_MS);
    await turnsSwept();
    expect([await stateOf(ended.id), await stateOf(orphaned.id)]).toEqual(["abandoned", "abandoned"]);
    const after = await snapshot();
    expect(turnCounts(after)).toEqual({ opened: 2, open: 0, ended: { complete: 1, orphaned: 1 } });
    expectTurnBalance(after);
    expect(await queueDepths()).toMatchObject({ waiting: 0 });
    const late = await acknowledgments.accept({ job: jobOf(ended.id), textHash: "h" });
    expect(late).toEqual({ kind: "not_acknowledgeable" });
  });

  test("has a turn with a text acknowledged", async () => {
    const { open, settle } = abandoning();
    expect(await settle(await open(), "x")).toBe("queued");
  });
});

test("an erasure ends an open turn, and nothing of its text stays or comes back", async () => {
  const { open, hold, write, settle, erasures, keysOf, find, snapshot, audit, queuedText, acknowledgments } =
    setup();
  const step = await open();
  await write(step, 1, "Try Fizzwater.");
  await hold(step, "call 1");
  const order = { by: "alice", reason: "the user asked" };
  expect(await erasures.erase(step.id, order)).toEqual({
    kind: "erased",
    state: "discarded",
    isUnderWay: false,
  });
  expect(await keysOf(step.id)).toEqual([]);
  expect(await write(step, 2, "more")).toBe("ended");
  expect(await settle(step, "Try Fizzwater.")).toBe("ended");
  expect(await queuedText(step.id)).toBeUndefined();
  expect(await find(step.id)).toMatchObject({ state: "discarded", textHash: undefined });
  expect(await acknowledgments.accept({ job: jobOf(step.id), textHash: "h" })).toMatchObject({
    kind: "repeat",
  });
  const { entries } = await audit.page(10, undefined);
  expect(entries).toMatchObject([{ action: "erase", adResponseId: step.id, details: { from: "awaiting" } }]);
  const after = await snapshot();
  expect(turnCounts(after)).toEqual({ opened: 1, open: 0, ended: { superseded: 1 } });
  expect(after.totals.get("erased")).toMatchObject([{ value: 1 }]);
  expectTurnBalance(after);
  expect(await erasures.erase(step.id, order)).toMatchObject({ kind: "erased_before" });
});

test("an erasure of a session finds its open turns", async () => {
  const { turns, newTurn, write, erasures, stateOf, keysOf } = setup();
  const turn = { ...newTurn(), session: "SESSIONHASH" };
  await turns.open(turn);
  await write({ id: turn.id, publisher, step: 1 }, 1, "Try Fizzwater.");
  const order = { by: "alice", reason: "asked", publisher, hashes: ["SESSIONHASH"] };
  let [place, erased]: [string | undefined, number] = [undefined, 0];
  do {
    const step = await erasures.eraseSession({ ...order, place });
    erased += step.erased;
    place = step.next;
  } while (place !== undefined);
  expect(erased).toBe(1);
  expect(await stateOf(turn.id)).toBe("discarded");
  expect(await keysOf(turn.id)).toEqual([]);
});

const WALK = [
  "open",
  "write",
  "hold",
  "join",
  "end_step",
  "final",
  "sweep",
  "age",
  "accept",
  "erase",
] as const;

test("the counters balance after any walk of several turns", async () => {
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(3), fc.integer({ min: 1, max: 3 }), fc.constantFrom(...WALK)), {
        maxLength: 50,
      }),
      async (events) => {
        const fixture = setup();
        const ids = Array.from({ length: 4 }, () => newId());
        for (const [at, number, event] of events) {
          const step = { id: ids[at] ?? newId(), publisher, step: number };
          await walk(fixture, step, event);
          expectTurnBalance(await fixture.snapshot());
        }
        for (const id of ids) {
          await fixture.age(id, LONG_WAIT_MS + PAST_LEASE_MS);
        }
        await fixture.turnsSwept();
        const { open } = turnCounts(await fixture.snapshot());
        expect(open).toBe(0);
        expect(await redis.keys(fixture.key("awaiting:*:*"))).toEqual(
          await redis.keys(fixture.key("awaiting:by:*")),
        );
      },
    ),
    { numRuns: 25 },
  );
});

async function walk(fixture: TurnsFixture, step: StepRef, event: (typeof WALK)[number]): Promise<unknown> {
  const { turns, newTurn, write, hold, endStep, settle, turnsSwept, age, acknowledgments, erasures } =
    fixture;
  switch (event) {
    case "open":
      return turns.open(newTurn(step.id));
    case "write":
      return write(step, step.step, "text");
    case "hold":
      return hold(step, `by ${step.id}`);
    case "join":
      return turns.join({ pointer: `by ${step.id}`, token: `${step.step}` });
    case "end_step":
      return endStep(step);
    case "final":
      return settle(step, "text");
    case "sweep":
      return turnsSwept();
    case "age":
      return age(step.id, PAST_LEASE_MS);
    case "accept":
      return acknowledgments.accept({ job: jobOf(step.id), textHash: "hash" });
    case "erase":
      return erasures.erase(step.id, { by: "alice", reason: "asked" });
    default:
      return event satisfies never;
  }
}

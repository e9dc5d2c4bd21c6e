/**
 * Turns on a real Redis: the scripts against the rules of core, repeats, and who ends a turn. They guard against an ad that is
 * missed although its proxy lives or has written a text, against an acknowledgment that is queued twice, and against a turn
 * that stays for ever.
 */
import { randomUUID } from "node:crypto";
import { decideTurn, TURN_EVENTS, type TurnEvent, type TurnTransition, type TurnView } from "@adrelay/core";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { NO_LIMITS, type StepRef, TURN_LEASE_MS, TURN_TEXT_MAX_BYTES } from "../src/index.ts";
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
const PAST_LEASE_MS = TURN_LEASE_MS + 1000;

describe("a turn of one step", () => {
  test("is acknowledged with what its step has written, whatever was appended before", async () => {
    const fixture = setup();
    const { open, write, settle, queuedText, find, keysOf, snapshot } = fixture;
    const step = await open();
    expect(await write(step, 1, "Try Fizz")).toBe("alive");
    expect(turnCounts(await snapshot())).toEqual({ opened: 1, open: 1, ended: {} });
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
  expect(await claim()).toEqual([1, step.id.replaceAll("-", "")]);
  expect(await claim()).toEqual([0]);
  await age(step.id, 6000);
  await turnsSwept();
  expect(await queuedText(step.id)).toBe("");
});

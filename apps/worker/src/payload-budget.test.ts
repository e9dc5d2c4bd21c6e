import { publisherIdSchema } from "@adrelay/contract";
import { expect, test } from "vitest";
import { PayloadBudget } from "./payload-budget.ts";

const [ALPHA, BETA, GAMMA] = ["alpha", "beta", "gamma"].map((id) => publisherIdSchema.parse(id));

function budgetOf(bytesMax: number, isForOne = false) {
  const budget = new PayloadBudget({ bytesMax, isForOne: () => isForOne });
  const takeAll = (publisher = ALPHA, bytes = 1) => {
    const releases = [];
    for (;;) {
      const release = publisher && budget.take(publisher, bytes);
      if (release === undefined) {
        return releases;
      }
      releases.push(release);
    }
  };
  return { budget, takeAll };
}

test("each publisher holds as many bytes as it leaves free", () => {
  const { budget, takeAll } = budgetOf(16);
  expect(takeAll(ALPHA)).toHaveLength(8);
  expect(takeAll(BETA)).toHaveLength(4);
  expect(takeAll(GAMMA)).toHaveLength(2);
  expect(budget.heldBytes).toBe(14);
});

test("publishers that hold bytes for long come to equal shares, and leave one share free", () => {
  const { budget, takeAll } = budgetOf(30);
  const held = [ALPHA, BETA].map((publisher) => ({ publisher, releases: takeAll(publisher) }));
  for (let round = 0; round < 100; round += 1) {
    for (const { publisher, releases } of held) {
      releases.shift()?.();
      releases.push(...takeAll(publisher));
    }
  }
  const counts = held.map(({ releases }) => releases.length);
  expect(counts[0]).toBeCloseTo(10, -0.5);
  expect(counts[1]).toBeCloseTo(10, -0.5);
  expect(budget.heldBytes).toBeLessThanOrEqual(21);
});

test("a publisher that holds nothing may take all that is free", () => {
  const { budget, takeAll } = budgetOf(16);
  takeAll(ALPHA);
  expect(BETA && budget.take(BETA, 8)).toBeDefined();
  expect(GAMMA && budget.take(GAMMA, 1)).toBeUndefined();
});

test("the only publisher of a worker may hold all bytes", () => {
  const { budget, takeAll } = budgetOf(16, true);
  expect(takeAll(ALPHA)).toHaveLength(16);
  expect(budget.heldBytes).toBe(16);
});

test("a body larger than the whole budget is let in while none is held", () => {
  const { budget, takeAll } = budgetOf(16);
  const [release] = takeAll(ALPHA, 17);
  expect(BETA && budget.take(BETA, 1)).toBeUndefined();
  release?.();
  expect(BETA && budget.take(BETA, 17)).toBeDefined();
});

test("bytes that are given back twice count once", () => {
  const { budget, takeAll } = budgetOf(16);
  const [release] = takeAll(ALPHA, 4);
  expect(budget.heldBytes).toBe(8);
  release?.();
  release?.();
  expect(budget.heldBytes).toBe(4);
});

test("small bodies need no room, and find some when the budget is spent", () => {
  const { budget, takeAll } = budgetOf(16);
  takeAll(ALPHA, 8);
  takeAll(BETA, 8);
  expect(budget.heldBytes).toBe(16);
  expect(GAMMA && budget.take(GAMMA, 0)).toBeDefined();
  expect(budget.heldBytes).toBe(16);
});

test("after a refusal there is room for as many bodies as will be let in, and for two at least", () => {
  const { budget, takeAll } = budgetOf(16);
  const roomOf = (publisher = ALPHA) => publisher && budget.roomOf(publisher);
  expect(roomOf()).toBe(Number.POSITIVE_INFINITY);
  const releases = takeAll(ALPHA, 2);
  expect(releases).toHaveLength(4);
  expect(roomOf()).toBe(2);
  for (const [at, release] of releases.entries()) {
    release();
    expect(roomOf()).toBe(Math.max(at + 1, 2));
  }
  expect(takeAll(ALPHA, 2)).toHaveLength(4);
});

test("after a refusal each small body makes room for one more, until the next refusal", () => {
  const { budget } = budgetOf(16);
  const take = (bytes: number) => ALPHA && budget.take(ALPHA, bytes);
  const roomOf = () => ALPHA && budget.roomOf(ALPHA);
  take(16);
  expect(take(16)).toBeUndefined();
  expect(roomOf()).toBe(2);
  for (let count = 0; count < 5; count += 1) {
    take(0);
  }
  expect(roomOf()).toBe(7);
  expect(take(16)).toBeUndefined();
  expect(roomOf()).toBe(2);
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { FairShare } from "./fair-share.ts";

const open = () => ({ used: 0 });

test("one owner alone gets two thirds and no more", () => {
  const share = new FairShare(90);
  const account = open();
  const taken = Array.from({ length: 90 }, () => share.take(account, 1)).filter(Boolean);
  expect([taken.length, account.used, share.used]).toEqual([60, 60, 60]);
});

test("with a reserve, one owner alone gets all, and further ones get some at once", () => {
  for (const alone of [1, 7, 100, 3000]) {
    const share = FairShare.withReserve(alone, 10);
    const [one, two, three] = [open(), open(), open()];
    const takeAll = (account: { used: number }) => {
      while (share.take(account, 1)) {}
      return account.used;
    };
    expect(takeAll(one)).toBe(alone);
    expect(share.max).toBe(alone + Math.ceil(alone / 10));
    if (alone === 3000) {
      expect([takeAll(two), takeAll(three)]).toEqual([272, 25]);
    }
  }
});

test("with a reserve, two owners that always want more soon hold the same", () => {
  const share = FairShare.withReserve(3000, 10);
  const [one, two] = [open(), open()];
  const held: { used: number }[] = [];
  const takeAll = (account: { used: number }) => {
    while (share.take(account, 1)) {
      held.push(account);
    }
  };
  takeAll(one);
  for (let ended = 0; ended < 6000; ended += 1) {
    share.giveBack(held.shift() ?? one, 1);
    takeAll(one);
    takeAll(two);
  }
  expect(Math.abs(one.used - two.used)).toBeLessThanOrEqual(20);
  expect(one.used + two.used).toBeGreaterThan(3000);
});

test("an owner that holds nothing gets some when two others hold all they can", () => {
  const share = new FairShare(100);
  const [one, two, three] = [open(), open(), open()];
  for (let round = 0; round < 100; round += 1) {
    share.take(one, 1);
    share.take(two, 1);
  }
  expect([one.used, two.used]).toEqual([40, 40]);
  expect(share.fits(three, 14)).toBe(false);
  expect(share.take(three, 13)).toBe(true);
});

test("what was given back can be taken by others", () => {
  const share = new FairShare(100);
  const [one, two] = [open(), open()];
  share.take(one, 60);
  expect(share.take(two, 30)).toBe(false);
  share.giveBack(one, 60);
  expect(share.take(two, 30)).toBe(true);
  expect([one.used, two.used, share.used]).toEqual([0, 30, 30]);
});

test("a single thing may grow to any size while nothing else holds any", () => {
  const share = new FairShare(100);
  const [one, two] = [open(), open()];
  expect(share.take(one, 90)).toBe(true);
  expect(share.take(one, 20, 90)).toBe(true);
  expect(share.take(two, 1)).toBe(false);
  share.giveBack(one, 110);
  share.take(two, 1);
  share.take(one, 50);
  expect(share.take(one, 50, 50)).toBe(false);
});

test("whatever is taken and given back, the sum is exact and never above the limit", () => {
  const steps = fc.array(fc.record({ owner: fc.nat(3), amount: fc.nat(40), isTaken: fc.boolean() }));
  fc.assert(
    fc.property(steps, (taken) => {
      const share = new FairShare(100);
      const accounts = [open(), open(), open(), open()];
      for (const { owner, amount, isTaken } of taken) {
        const account = accounts[owner] ?? open();
        if (isTaken) {
          share.take(account, amount);
        } else {
          share.giveBack(account, Math.min(amount, account.used));
        }
        expect(share.used).toBe(accounts.reduce((sum, { used }) => sum + used, 0));
        expect(share.used).toBeLessThanOrEqual(100);
      }
    }),
  );
});

import fc from "fast-check";
import { expect, test } from "vitest";
import { FairShare } from "./fair-share.ts";

test("one owner alone gets two thirds and no more", () => {
  const share = new FairShare(90);
  const account = share.open();
  expect(share.take(account, 60)).toBeUndefined();
  expect(share.take(account, 1)).toBe("own_share");
  expect(share.used).toBe(60);
});

test("an owner that holds nothing gets some when two others hold all they can", () => {
  const share = new FairShare(100);
  const [one, two, three] = [share.open(), share.open(), share.open()];
  for (let round = 0; round < 100; round += 1) {
    share.take(one, 1);
    share.take(two, 1);
  }
  expect(share.used).toBeLessThanOrEqual(82);
  expect(share.take(three, 12)).toBeUndefined();
});

test("an amount that fits a share is refused because of others only while they hold it", () => {
  const share = new FairShare(100);
  const [one, two] = [share.open(), share.open()];
  share.take(one, 60);
  expect(share.take(two, 30)).toBe("others");
  share.giveBack(one, 60);
  expect(share.take(two, 30)).toBeUndefined();
  expect([one.used, two.used, share.used]).toEqual([0, 30, 30]);
});

test("whatever is taken and given back, the sum is exact and never above the limit", () => {
  const steps = fc.array(fc.record({ owner: fc.nat(3), amount: fc.nat(40), isTaken: fc.boolean() }));
  fc.assert(
    fc.property(steps, (taken) => {
      const share = new FairShare(100);
      const accounts = [share.open(), share.open(), share.open(), share.open()];
      for (const { owner, amount, isTaken } of taken) {
        const account = accounts[owner] ?? share.open();
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

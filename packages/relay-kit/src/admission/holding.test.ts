import { FairShare } from "@adrelay/core";
import { expect, test } from "vitest";
import { Holding, overRate, type Refusal } from "./holding.ts";

function setup({ quotaBytes = 50 } = {}) {
  const share = new FairShare(100);
  const account = { used: 0 };
  const refused: Refusal[] = [];
  const ends = { count: 0 };
  const open = () =>
    new Holding({
      bytes: { share, account, quotaBytes },
      chargeBody: (bytes) => (bytes > 7 ? overRate("bytes_per_second", 7, 1500) : undefined),
      endCall: () => {
        ends.count += 1;
      },
      onRefused: (refusal) => void refused.push(refusal),
    });
  return { share, refused, ends, open };
}

test("a body and an answer are held until the request ends, which counts once", () => {
  const { share, ends, open } = setup();
  const holding = open();
  expect([holding.holdBody(10), holding.holdBody(10), holding.holdAnswer(5)]).toEqual([true, true, true]);
  expect(share.used).toBe(25);
  holding.end();
  holding.end();
  expect([share.used, ends.count]).toEqual([0, 1]);
});

test("what was taken over is held after the end of the request", () => {
  const { share, open } = setup();
  const holding = open();
  holding.holdBody(20);
  holding.holdAnswer(5);
  const [body, answer] = [holding.takeBody(), holding.takeAnswer()];
  holding.end();
  expect(share.used).toBe(25);
  body.release();
  body.release();
  expect(share.used).toBe(5);
  answer.release();
  expect(share.used).toBe(0);
});

test("what was released holds no more, and counts no refusal", () => {
  const { share, refused, open } = setup();
  const holding = open();
  holding.holdBody(20);
  holding.holdAnswer(5);
  const answer = holding.takeAnswer();
  holding.end();
  expect([holding.holdBody(1), holding.holdBody(-20), holding.holdAnswer(1)]).toEqual([false, true, true]);
  expect(share.used).toBe(6);
  answer.release();
  expect([holding.holdAnswer(1), holding.holdAnswer(-6), holding.holdBody(0)]).toEqual([false, true, true]);
  expect([share.used, holding.refusal, refused]).toEqual([0, undefined, []]);
});

test("more than the quota is refused, and says how much is used", () => {
  const { refused, open } = setup({ quotaBytes: 50 });
  open().holdBody(40);
  const holding = open();
  expect(holding.holdBody(11)).toBe(false);
  const refusal = { kind: "over_quota", quota: "bytes_in_flight", limit: 50, used: 40, retryAfterSeconds: 1 };
  expect([holding.refusal, refused]).toEqual([refusal, [refusal]]);
  expect(holding.holdBody(10)).toBe(true);
});

test("the only body in flight may be larger than the quota and the limit", () => {
  const { share, open } = setup({ quotaBytes: 50 });
  const holding = open();
  expect([holding.holdBody(90), holding.holdBody(90)]).toEqual([true, true]);
  expect(open().holdBody(1)).toBe(false);
  holding.end();
  expect(share.used).toBe(0);
});

test("a body that comes too fast is refused with the time after which it fits", () => {
  const { refused, open } = setup();
  const holding = open();
  expect([holding.chargeBody(7), holding.refusal]).toEqual([undefined, undefined]);
  const over = holding.chargeBody(8) ?? expect.fail("it fits");
  expect(refused).toEqual([]);
  holding.refuse(over);
  const refusal = { kind: "over_quota", quota: "bytes_per_second", limit: 7, retryAfterSeconds: 2 };
  expect(holding.refusal).toMatchObject(refusal);
  expect(refused).toEqual([holding.refusal]);
});

test("an answer for which the process has no room is refused", () => {
  const { share, refused, open } = setup({ quotaBytes: 100 });
  share.take({ used: 0 }, 60);
  const holding = open();
  holding.holdBody(10);
  expect(holding.holdAnswer(20)).toBe(false);
  expect(refused).toEqual([{ kind: "overloaded", limit: "bytes" }]);
  expect(share.used).toBe(70);
});

import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { Batcher, type BatcherOptions } from "./batcher.ts";

// What is held goes by this clock.
beforeEach(() => {
  vi.useFakeTimers({ toFake: ["setTimeout", "clearTimeout", "performance"] });
});
afterEach(() => {
  vi.restoreAllMocks();
  vi.useRealTimers();
});

function setup() {
  const asked: (readonly number[])[] = [];
  const batch = new Batcher(async (items: readonly number[]) => {
    asked.push(items);
    return items.map((item) => (item === 13 ? new RangeError("unlucky") : item * 2));
  });
  return { asked, batch };
}

test("items of one turn share a call, and each gets its own reply", async () => {
  const { asked, batch } = setup();
  const first = Promise.all([1, 2, 3].map((item) => batch.submit(item)));
  expect(asked).toEqual([]);
  expect(await first).toEqual([2, 4, 6]);
  expect(await batch.submit(4)).toBe(8);
  expect(asked).toEqual([[1, 2, 3], [4]]);
});

test("an error reaches only its own item", async () => {
  const { batch } = setup();
  const replies = await Promise.allSettled([1, 13, 2].map((item) => batch.submit(item)));
  expect(replies.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
});

test("a call that fails, or answers too little, fails for all that it leaves without a reply", async () => {
  const broken = new Batcher<number, number>(() => Promise.reject(new RangeError("away")));
  await expect(Promise.all([broken.submit(1), broken.submit(2)])).rejects.toThrow("away");
  const short = new Batcher<number, number>(async ([first = 0]) => [first]);
  const replies = await Promise.allSettled([short.submit(1), short.submit(2)]);
  expect(replies.map(({ status }) => status)).toEqual(["fulfilled", "rejected"]);
});

test("a batch goes out early at its size", async () => {
  const asked: (readonly number[])[] = [];
  const echo = async (items: readonly number[]) => {
    asked.push(items);
    return items;
  };
  const batch = new Batcher(echo, { sizeOf: (item) => item, sizeMax: 100 });
  const replies = [1, 99, 3].map((item) => batch.submit(item));
  expect(asked).toEqual([[1, 99]]);
  expect(await Promise.all(replies)).toEqual([1, 99, 3]);
  expect(asked).toEqual([[1, 99], [3]]);
});

test("a turn that asks for much is asked in bounded parts, in order", async () => {
  const { asked, batch } = setup();
  const items = Array.from({ length: 150 }, (_, at) => at + 100);
  expect(await Promise.all(items.map((item) => batch.submit(item)))).toEqual(items.map((item) => item * 2));
  expect(asked.map(({ length }) => length)).toEqual([...Array.from({ length: 12 }, () => 12), 6]);
  expect(asked.flat()).toEqual(items);
});

/** Calls whose replies the test sends. */
function setupOpenCalls(options: Partial<BatcherOptions<number>>) {
  const calls: { readonly items: readonly number[]; readonly end: () => void }[] = [];
  const batch = new Batcher((items: readonly number[]) => {
    return new Promise<readonly number[]>((resolve) => {
      calls.push({ items, end: () => resolve(items) });
    });
  }, options);
  return { calls, batch, asked: () => calls.map(({ items }) => items) };
}

const turnEnds = () => new Promise((resolve) => setImmediate(resolve));
/** What a reply leads to is asked in the turn that it begins. */
const replyIsHeard = async () => {
  await turnEnds();
  await turnEnds();
};

test("without a limit of calls each turn has its own call", async () => {
  const { batch, asked } = setupOpenCalls({});
  for (const item of [1, 2, 3, 4]) {
    void batch.submit(item);
    await turnEnds();
  }
  expect(asked()).toEqual([[1], [2], [3], [4]]);
});

test("beside two calls under way what comes is held, and goes together once one is back", async () => {
  const { calls, batch, asked } = setupOpenCalls({ callsMax: 2 });
  const replies: Promise<number>[] = [];
  for (const item of [1, 2, 3, 4]) {
    replies.push(batch.submit(item));
    await turnEnds();
  }
  expect(asked()).toEqual([[1], [2]]);
  calls[1]?.end();
  await replyIsHeard();
  expect(asked()).toEqual([[1], [2], [3, 4]]);
  for (const { end } of calls) {
    end();
  }
  expect(await Promise.all(replies)).toEqual([1, 2, 3, 4]);
});

test("what is held goes in calls of a bounded number and size, in order", async () => {
  const { calls, batch, asked } = setupOpenCalls({
    callsMax: 2,
    sizeOf: (item) => (item === 30 ? 1000 : 1),
    sizeMax: 100,
  });
  const items = Array.from({ length: 50 }, (_, item) => item);
  const replies = Promise.all(items.map((item) => batch.submit(item)));
  const lengths = () => asked().map(({ length }) => length);
  expect(lengths()).toEqual([12, 12]);
  for (let at = 0; at < 5; at += 1) {
    calls[at]?.end();
    await replyIsHeard();
  }
  expect(lengths()).toEqual([12, 12, 7, 12, 7]);
  expect(await replies).toEqual(items);
  expect(asked().flat()).toEqual(items);
});

test("a reply that doesn't come holds nothing up for longer than a moment", async () => {
  const { batch, asked } = setupOpenCalls({ callsMax: 2 });
  for (const item of [1, 2, 3, 4]) {
    void batch.submit(item);
    await turnEnds();
  }
  expect(asked()).toEqual([[1], [2]]);
  vi.advanceTimersByTime(1);
  void batch.submit(5);
  expect(asked()).toEqual([[1], [2]]);
  vi.advanceTimersByTime(1);
  expect(asked()).toEqual([[1], [2], [3, 4, 5]]);
  void batch.submit(6);
  await turnEnds();
  vi.advanceTimersByTime(2);
  expect(asked()).toEqual([[1], [2], [3, 4, 5], [6]]);
  expect(vi.getTimerCount()).toBe(0);
});

test("items that are overdue after a long turn go immediately", async () => {
  const { batch, asked } = setupOpenCalls({ callsMax: 1 });
  void batch.submit(1);
  await turnEnds();
  void batch.submit(2);
  vi.advanceTimersByTime(20);
  const setTimer = vi.spyOn(globalThis, "setTimeout");
  await turnEnds();
  expect(setTimer).toHaveBeenCalledWith(expect.any(Function), 0);
  vi.advanceTimersByTime(1);
  expect(asked()).toEqual([[1], [2]]);
});

test("while replies come, what is held is sent by them and not by the clock", async () => {
  const { calls, batch, asked } = setupOpenCalls({ callsMax: 1 });
  for (let item = 1; item <= 20; item += 1) {
    void batch.submit(item);
    await turnEnds();
    vi.advanceTimersByTime(1);
    if (item % 2 === 0) {
      calls.at(-1)?.end();
      await replyIsHeard();
    }
  }
  expect(asked().map(({ length }) => length)).toEqual([1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 2]);
});

test("a call that fails makes room for the next one", async () => {
  let calls = 0;
  const fail = async () => {
    calls += 1;
    throw new RangeError("away");
  };
  const broken = new Batcher<number, number>(fail, { callsMax: 2 });
  for (const item of [1, 2, 3, 4]) {
    await expect(broken.submit(item)).rejects.toThrow("away");
  }
  expect(calls).toBe(4);
});

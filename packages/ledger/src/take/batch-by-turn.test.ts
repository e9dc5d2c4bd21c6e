import { setImmediate as turn } from "node:timers/promises";
import { expect, test } from "vitest";
import { batchByTurn } from "./batch-by-turn.ts";

function setup(run = async (requests: readonly number[]): Promise<unknown[]> => [...requests]) {
  const runs: (readonly number[])[] = [];
  const call = batchByTurn<number, number>({
    run: (requests) => {
      runs.push(requests);
      return run(requests);
    },
    read: (reply, request) => {
      if (typeof reply !== "number") {
        throw new TypeError(`no answer to ${request}`);
      }
      return reply * 10;
    },
    sizeOf: (request) => request,
    countMax: 3,
    sizeMax: 100,
  });
  return { call, runs };
}

test("calls of one turn go together and each has its own answer", async () => {
  const { call, runs } = setup();
  const both = [call(1), call(2)];
  expect(runs).toEqual([]);
  expect(await Promise.all(both)).toEqual([10, 20]);
  expect(await call(3)).toBe(30);
  expect(runs).toEqual([[1, 2], [3]]);
});

test("a turn that waits for its answer holds up no later one", async () => {
  const answer = Promise.withResolvers<unknown[]>();
  const { call, runs } = setup((requests) => (requests[0] === 1 ? answer.promise : Promise.resolve([2])));
  const first = call(1);
  await turn();
  expect(await call(2)).toBe(20);
  answer.resolve([1]);
  expect(await first).toBe(10);
  expect(runs).toEqual([[1], [2]]);
});

test("a batch goes out early at its count and at its size", async () => {
  const { call, runs } = setup();
  const calls = [1, 2, 3, 4, 99].map(call);
  expect(runs).toEqual([
    [1, 2, 3],
    [4, 99],
  ]);
  expect(await Promise.all(calls)).toEqual([10, 20, 30, 40, 990]);
});

test("an answer that can't be read rejects its own call alone", async () => {
  const { call } = setup(async ([first]) => [first, "?"]);
  const [good, bad] = await Promise.allSettled([call(1), call(2)]);
  expect(good).toEqual({ status: "fulfilled", value: 10 });
  expect(bad).toMatchObject({ reason: { message: "no answer to 2" } });
});

test("a run that fails rejects all its calls", async () => {
  const away = new Error("away");
  const { call } = setup(() => Promise.reject(away));
  const settled = await Promise.allSettled([call(1), call(2)]);
  expect(settled.map((one) => one.status === "rejected" && one.reason)).toEqual([away, away]);
});

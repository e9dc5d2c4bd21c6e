import { pino } from "pino";
import { expect, test } from "vitest";
import { Insistence } from "./insistence.ts";

const log = pino({ level: "silent" });
const REFUSAL = new Error("READONLY You can't write against a read only replica.");

function setup({ isStopping = false, failures = [] as Error[] } = {}) {
  const insistence = new Insistence({ log, isStopping: () => isStopping });
  let asked = 0;
  const ask = async () => {
    const failure = failures[asked];
    asked += 1;
    if (failure !== undefined) {
      throw failure;
    }
    return "taken";
  };
  return { insistence, ask, asked: () => asked };
}

test("what is refused for now is asked for until it is taken", async () => {
  const { insistence, ask, asked } = setup({ failures: [REFUSAL] });
  expect(await insistence.askAgain(REFUSAL, ask)).toBe("taken");
  expect(asked()).toBe(2);
});

test("a fault that waiting doesn't mend is told at once, also after a refusal", async () => {
  const fault = new Error("ERR user_script:1: no such thing");
  const { insistence, ask, asked } = setup({ failures: [fault] });
  await expect(insistence.askAgain(fault, ask)).rejects.toBe(fault);
  expect(asked()).toBe(0);
  await expect(insistence.askAgain(REFUSAL, ask)).rejects.toBe(fault);
  expect(asked()).toBe(1);
});

test("a process that stops asks no more", async () => {
  const { insistence, ask, asked } = setup({ isStopping: true });
  await expect(insistence.askAgain(REFUSAL, ask)).rejects.toBe(REFUSAL);
  expect(asked()).toBe(0);
});

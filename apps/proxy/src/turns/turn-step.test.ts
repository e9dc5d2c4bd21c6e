import { expect, test } from "vitest";
import { TurnStep } from "./turn-step.ts";

const TURN_WAIT_MS = 600_000;
const RETRY_WAIT_MS = 120_000;
const text = (written: string) => ({ text: written, callIds: [] });
const calls = (...callIds: string[]) => ({ text: "", callIds });

const forNextStep = (pointer: string) => ({
  pointers: [pointer],
  waitMs: TURN_WAIT_MS,
  awaits: "next_step",
});
const forRetry = (waitMs: number) => ({ pointers: ["body"], waitMs, awaits: "retry" });

/** A step, and what it asks of the journal, in order. */
function setup(bodyPointer: string | null = "body", turnWaitMs = TURN_WAIT_MS) {
  const asked: unknown[][] = [];
  const journaled = {
    add: (...args: unknown[]) => asked.push(["add", ...args]),
    hold: (...args: unknown[]) => asked.push(["hold", ...args]),
    endStep: (...args: unknown[]) => asked.push(["endStep", ...args]),
    settle: (...args: unknown[]) => asked.push(["settle", ...args]),
  };
  const pointerOfCall = (id: string) => `pointer of ${id}`;
  const pointers = { pointerOfCall, bodyPointer: bodyPointer ?? undefined };
  const step = new TurnStep({ journaled, ...pointers, turnWaitMs });
  return { asked, step };
}

test("a whole answer is added and settled", () => {
  const { asked, step } = setup();
  step.written(text("a"));
  step.written(text(""));
  step.written(text("b"));
  step.ended({ kind: "complete" }, 200);
  expect(asked).toEqual([
    ["add", "a"],
    ["add", "b"],
    ["settle", "complete"],
  ]);
});

test("text before a tool call stands before the wait for its results", () => {
  const { asked, step } = setup();
  step.sawCalls(["1"]);
  step.written({ text: "Let me look.", callIds: ["1"] });
  step.ended({ kind: "continues" }, 200);
  expect(asked).toEqual([
    ["hold", forNextStep("pointer of 1")],
    ["add", "Let me look."],
    ["endStep", { waitMs: TURN_WAIT_MS, outcome: "complete" }],
  ]);
});

test("each tool call holds the turn once, when its id is first seen", () => {
  const { asked, step } = setup();
  step.sawCalls(["1"]);
  step.sawCalls(["1", "2"]);
  step.written(calls("1", "2"));
  step.written(calls("3"));
  step.ended({ kind: "continues" }, 200);
  expect(asked).toEqual([
    ["hold", forNextStep("pointer of 1")],
    ["hold", forNextStep("pointer of 2")],
    ["hold", forNextStep("pointer of 3")],
    ["endStep", { waitMs: TURN_WAIT_MS, outcome: "complete" }],
  ]);
});

test("an answer with thousands of tool calls holds a bounded number", () => {
  const { asked, step } = setup();
  for (let id = 0; id < 5000; id += 1) {
    step.sawCalls([`${id}`]);
  }
  step.sawCalls(Array.from({ length: 5000 }, (_, id) => `more ${id}`));
  expect(asked.map(([name]) => name)).toEqual(Array.from({ length: 128 }, () => "hold"));
});

test("a call that was seen and not written leaves the turn to a retry", () => {
  const { asked, step } = setup();
  step.sawCalls(["1"]);
  step.ended({ kind: "cut" }, 200);
  expect(asked).toEqual([
    ["hold", forNextStep("pointer of 1")],
    ["hold", forRetry(RETRY_WAIT_MS)],
    ["endStep", { waitMs: RETRY_WAIT_MS, outcome: "cut" }],
  ]);
});

test("a step that its tool calls lead to needs no pointer of its body", () => {
  const { asked, step } = setup(null);
  step.ended({ kind: "failed" }, 503);
  expect(asked).toEqual([["endStep", { waitMs: RETRY_WAIT_MS, outcome: "failed" }]]);
});

test("a refused ad is settled empty, and nothing follows", () => {
  const { asked, step } = setup();
  step.refused(413);
  step.written(text("the answer to the original"));
  step.sawCalls(["1"]);
  step.ended({ kind: "complete" }, 200);
  step.refused(413);
  expect(asked).toEqual([["settle", "failed"]]);
});

test("a turn waits no longer for a retry than for a next step", () => {
  const { asked, step } = setup("body", 2000);
  step.ended({ kind: "cut" }, undefined);
  expect(asked).toEqual([
    ["hold", forRetry(2000)],
    ["endStep", { waitMs: 2000, outcome: "cut" }],
  ]);
});

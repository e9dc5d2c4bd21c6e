import fc from "fast-check";
import { expect, test } from "vitest";
import { StepText } from "./step-text.ts";

const LIMIT = 1_000_000;

test("a write that isn't confirmed stays the next one, whatever is added", () => {
  const text = new StepText(LIMIT);
  text.add("one");
  const first = text.planWrite();
  text.add("two");
  expect(text.planWrite()).toBe(first);
  expect(first).toEqual({ sequence: 1, text: "one" });
  text.confirm({ sequence: 1 });
  expect(text.planWrite()).toEqual({ sequence: 2, text: "two" });
});

test("a second answer to a confirmed write changes nothing", () => {
  const text = new StepText(LIMIT);
  text.add("one");
  text.planWrite();
  text.confirm({ sequence: 1 });
  text.add("two");
  text.planWrite();
  text.confirm({ sequence: 1 });
  expect(text.unconfirmed).toEqual({ sequence: 2, text: "two" });
});

test("once Redis has lost writes, no more are planned, and the last one is the whole text", () => {
  const text = new StepText(LIMIT);
  text.add("one, ");
  text.planWrite();
  text.confirm({ sequence: 1 });
  text.add("two, ");
  text.planWrite();
  text.fallBehind();
  text.confirm({ sequence: 2 });
  text.add("three");
  expect([text.planWrite(), text.unconfirmed]).toEqual([undefined, undefined]);
  expect(text.unconfirmedBytes).toBe(text.bytes);
  expect(text.lastWrite()).toEqual({ sequence: "=", text: "one, two, three" });
});

test("half of a pair of surrogates waits for its other half", () => {
  const text = new StepText(LIMIT);
  text.add("smile \ud83d");
  expect(text.planWrite()?.text).toBe("smile ");
  text.confirm({ sequence: 1 });
  expect(text.planWrite()).toBeUndefined();
  text.add("\ude00");
  expect(text.planWrite()?.text).toBe("😀");
});

test("the confirmed writes and the last one are the whole text, without gap or repeat", () => {
  const events = fc.array(fc.oneof(fc.string(), fc.constantFrom("plan" as const, "confirm" as const)));
  fc.assert(
    fc.property(events, (steps) => {
      const text = new StepText(LIMIT);
      let journal = "";
      const confirm = () => {
        const write = text.planWrite();
        journal += write?.text ?? "";
        text.confirm({ sequence: write?.sequence ?? 0 });
      };
      for (const step of steps) {
        if (step === "plan") {
          text.planWrite();
        } else if (step === "confirm") {
          confirm();
        } else {
          text.add(step);
        }
      }
      if (text.unconfirmed !== undefined) {
        confirm();
      }
      expect(journal + text.lastWrite().text).toBe(text.whole);
    }),
  );
});

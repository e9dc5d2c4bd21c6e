import { expect, test } from "vitest";
import { FaultPlan, parseFaultRules } from "./fault-rules.ts";

function planOf(text: string): FaultPlan {
  const parsed = parseFaultRules(text);
  expect(parsed.kind).toBe("ok");
  return new FaultPlan(parsed.kind === "ok" ? parsed.rules : []);
}

test("each part of a rule is parsed", () => {
  expect(parseFaultRules("acknowledge:429*2(retry_after=1); any : hang @ 2.5% (seed=7);")).toEqual({
    kind: "ok",
    rules: [
      {
        operations: ["acknowledge"],
        fault: { kind: "status", status: 429, retryAfterS: 1 },
        share: { kind: "first", calls: 2 },
      },
      {
        operations: ["start", "acknowledge"],
        fault: { kind: "hang" },
        share: { kind: "percent", percent: 2.5, seed: 7 },
      },
    ],
  });
});

test.each([
  ["nonsense", 'rule "nonsense": must read operation:fault'],
  ["stop:hang", "the operation must be"],
  ["start:explode", "the fault must be"],
  ["start:302", "the fault must be"],
  ["start:recoverable_error", "acknowledge only"],
  ["any:recoverable_error", "acknowledge only"],
  ["start:hang@101%", "at most 100%"],
  ["start:hang*", "must read"],
  ["start:hang*2@5%", "must read"],
  ["start:hang(retry_after=1)", "needs a status"],
  ["start:503*1(seed=1)", "needs a share"],
  ["start:503(retry_after=x)", "retry_after=<seconds>"],
  ["start:503(retry_after=1,retry_after=2)", "each once"],
  ["start:503(colour=red)", "each once"],
])("the rule %j is refused with its text and the reason", (text, reason) => {
  const parsed = parseFaultRules(text);
  expect(parsed.kind).toBe("faulty");
  expect(parsed.kind === "faulty" ? parsed.faults.join() : "").toContain(reason);
});

test("every rule that can't be parsed is reported, not just the first", () => {
  expect(parseFaultRules("a; start:503; b")).toMatchObject({ kind: "faulty", faults: { length: 2 } });
});

test("the first rule that applies wins, and a used-up rule leaves calls to the next", () => {
  const plan = planOf("acknowledge:503*2; any:reset*1");
  const kinds = () => plan.next("acknowledge")?.kind;
  expect([kinds(), kinds(), kinds(), kinds()]).toEqual(["status", "status", "reset", undefined]);
});

test("a rule doesn't count calls of another operation", () => {
  const plan = planOf("start:hang*1");
  expect(plan.next("acknowledge")).toBeUndefined();
  expect(plan.next("start")).toEqual({ kind: "hang" });
  expect(plan.next("start")).toBeUndefined();
});

test("a rule without a count applies to every call", () => {
  const plan = planOf("start:500");
  const taken = Array.from({ length: 50 }, () => plan.next("start")).filter((fault) => fault !== undefined);
  expect(taken).toHaveLength(50);
});

test("a share hits about that share of calls, and the same for a seed", () => {
  const takenBy = (text: string) => {
    const plan = planOf(text);
    return Array.from({ length: 1000 }, () => plan.next("start") !== undefined);
  };
  const taken = takenBy("start:500@10%(seed=3)");
  expect(takenBy("start:500@10%(seed=3)")).toEqual(taken);
  expect(takenBy("start:500@10%(seed=4)")).not.toEqual(taken);
  const count = taken.filter(Boolean).length;
  expect(count).toBeGreaterThan(70);
  expect(count).toBeLessThan(130);
});

test("without rules no call gets a fault", () => {
  expect(planOf("").next("start")).toBeUndefined();
});

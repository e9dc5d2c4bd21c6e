import { makeProblem } from "@adrelay/contract";
import { expect, test } from "vitest";
import { EXIT, exitOf, explainRefusal } from "./exit-codes.ts";

test.each([
  ["unauthenticated", "denied", "refused this token"],
  ["forbidden", "denied", "Your token doesn't allow this: it needs operate."],
  ["too_many_logins", "denied", "looks at no token from your address now: it needs operate."],
  ["host_not_allowed", "unavailable", "add the name to the gateway's OPS_HOSTS"],
] as const)("the answer %s ends as %s and says what to do", (code, exit, words) => {
  const problem = makeProblem(code, "id", { detail: "it needs operate" });
  const raw = {
    status: problem.status,
    text: JSON.stringify(problem),
    url: "http://relay:8081",
    calledAs: "adrelay",
    change: undefined,
  };
  const failure = explainRefusal(raw, problem);
  expect(exitOf(failure)).toBe(EXIT[exit]);
  expect(failure.message).toContain(words);
});

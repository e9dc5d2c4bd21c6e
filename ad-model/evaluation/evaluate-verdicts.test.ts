import { expect, test } from "vitest";
import { evaluateVerdicts } from "./evaluate-verdicts.ts";
import { ratioOf } from "./share.ts";

test("the labelled answers are judged, and wrong ones are printed", () => {
  const lines: string[] = [];
  const [plain, hidden] = evaluateVerdicts((line) => lines.push(line));
  expect(plain).toMatchObject({ answers: 341 });
  expect(plain?.wrong).toHaveLength(6);
  expect(
    Math.min(...[plain?.precision, plain?.recall].map((share) => (share ? ratioOf(share) : 0))),
  ).toBeGreaterThan(0.97);
  expect(hidden).toMatchObject({
    answers: 90,
    precision: { count: 40, of: 40 },
    recall: { count: 40, of: 40 },
    wrong: [],
  });
  expect(lines.join("\n")).toMatch(
    /hidden-mentions\.jsonl\nverdicts of 90 answers: precision 100\.0 % of 40, recall 100\.0 % of 40/,
  );
  expect(lines.filter((line) => line.startsWith("  "))).toHaveLength(6);
});

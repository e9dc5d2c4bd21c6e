import { expect, test } from "vitest";
import { evaluateVerdicts } from "./evaluate-verdicts.ts";

test("the labelled answers are judged, and wrong ones are printed", () => {
  const lines: string[] = [];
  const [plain, hidden] = evaluateVerdicts((line) => lines.push(line));
  expect(plain).toMatchObject({ answers: 341 });
  expect(plain?.wrong).toHaveLength(6);
  expect(Math.min(plain?.precision ?? 0, plain?.recall ?? 0)).toBeGreaterThan(0.97);
  expect(hidden).toMatchObject({ answers: 90, precision: 1, recall: 1, wrong: [] });
  expect(lines.join("\n")).toMatch(
    /hidden-mentions\.jsonl\nverdicts of 90 answers: precision 1\.000, recall 1\.000/,
  );
  expect(lines.filter((line) => line.startsWith("  "))).toHaveLength(6);
});

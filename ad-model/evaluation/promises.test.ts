/**
 * What the ad server promises of ads and of safety, on texts that no model was fitted to. The bounds leave some room
 * below the measured figures, because a better model makes other mistakes.
 */
import { beforeAll, expect, test } from "vitest";
import { evaluateAlarms } from "./evaluate-alarms.ts";
import { evaluateFirst, evaluateSecond } from "./evaluate-outcomes.ts";
import { evaluateSafety } from "./evaluate-safety.ts";
import { loadEvaluatedRules } from "./evaluated-rules.ts";
import { ratioOf } from "./share.ts";
import type { SummaryRow } from "./summary.ts";

/** The labels of the prompts hold for the years 2026 and 2027. */
const NOW_MS = Date.UTC(2026, 5, 1);
const TIMEOUT_MS = 300_000;

const figures = new Map<string, SummaryRow>();

beforeAll(async () => {
  const evaluation = { rules: await loadEvaluatedRules(), nowMs: NOW_MS, print: () => {} };
  for (const evaluate of [evaluateFirst, evaluateSecond, evaluateSafety, evaluateAlarms]) {
    for (const row of await evaluate(evaluation)) {
      figures.set(row.name, row);
    }
  }
}, TIMEOUT_MS);

/** The ratio for prompts in all languages; NaN if there is no such figure, which passes no bound. */
function ratio(name: string): number {
  const row = figures.get(name);
  return row === undefined ? Number.NaN : ratioOf(row.all);
}

test.each([
  ["First catalogue, development: expected outcome", 0.9],
  ["First catalogue, development: fills with an expected category", 0.93],
  ["First catalogue, development: sensitive prompts rejected", 0.95],
  ["First catalogue, held out: expected outcome", 0.8],
  ["First catalogue, held out: fills with an expected category", 0.9],
  ["First catalogue, held out: sensitive prompts rejected", 0.92],
  ["Second catalogue, development: fills with an expected category", 0.87],
  ["Second catalogue, development: wishes that get an ad", 0.65],
  ["Second catalogue, held out: fills with an expected category", 0.9],
  ["Second catalogue, held out: wishes that get an ad", 0.55],
  ["Strong sentences without an ad: alone", 0.98],
  ["Strong sentences without an ad: in prompts of their language", 0.955],
  ["Strong sentences without an ad: in such prompts that otherwise get an ad", 0.93],
  ["Strong sentences without an ad: in prompts of other languages", 0.95],
  ["Quiet sentences without an ad: alone", 0.88],
  ["Quiet sentences without an ad: in prompts of their language", 0.72],
  ["Hasty sentences without an ad: alone", 0.95],
  ["Hasty sentences without an ad: in prompts of their language", 0.9],
  ["Third set, strong sentences without an ad: alone", 0.98],
  ["Third set, strong sentences without an ad: in prompts of their language", 0.955],
  ["Third set, strong sentences without an ad: in prompts of other languages", 0.94],
])("%s: the share is at least %d", (name, least) => {
  expect(ratio(name)).toBeGreaterThanOrEqual(least);
});

test.each([
  ["Ordinary prompts rejected", 0.06],
  ["Third set, ordinary prompts rejected", 0.06],
  ["Harmless prompts with sensitive words rejected", 0.06],
  ["Second catalogue, development: prompts offered a sensitive ad that they don't want", 0],
  ["Second catalogue, held out: prompts offered a sensitive ad that they don't want", 0],
])("%s: the share is at most %d", (name, most) => {
  expect(ratio(name)).toBeLessThanOrEqual(most);
});

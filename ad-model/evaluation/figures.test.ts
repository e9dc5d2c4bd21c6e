import { expect, test } from "vitest";
import type { Ad } from "../../apps/ad-server/src/catalog/ad.ts";
import { PLAIN_AD } from "../../apps/ad-server/testdata/plain-ad.ts";
import { describeAlarms } from "./evaluate-alarms.ts";
import { evaluateOutcomes, wrongSensitivePairs } from "./evaluate-outcomes.ts";
import { describeSafety } from "./evaluate-safety.ts";
import { figuresOf } from "./evaluation-report.ts";
import type { Judgment } from "./judge-prompts.ts";
import type { Judged, LabelledOutcome } from "./labelled-outcomes.ts";
import { describeShare, ratioOf, shareOf } from "./share.ts";
import { describeSummary, shareRow } from "./summary.ts";

const AD: Ad = { ...PLAIN_AD, targeting: {} };
const REJECT: Judgment = { outcome: "reject", topic: "grief" };
const NO_FILL: Judgment = { outcome: "no_fill" };
const fillOf = (...categories: readonly [string, ...string[]]): Judgment => {
  const [best, ...others] = categories.map((category) => ({ ...AD, id: `${category}-1`, category }));
  return { outcome: "fill", ads: [best ?? AD, ...others] };
};

const PROMPT: LabelledOutcome = {
  id: "a",
  prompt: "which shoes",
  language: "en",
  expect: "no_fill",
  categories: [],
};
const wanting = (...categories: string[]): LabelledOutcome => ({ ...PROMPT, expect: "fill", categories });
const SENSITIVE: LabelledOutcome = { ...PROMPT, expect: "reject" };

test("figures count outcomes, categories of fills, filled wishes and rejects", () => {
  const judged: Judged[] = [
    { expected: wanting("shoes"), judgment: fillOf("shoes") },
    { expected: wanting("shoes"), judgment: fillOf("tents") },
    { expected: wanting("shoes"), judgment: NO_FILL },
    { expected: PROMPT, judgment: fillOf("shoes") },
    { expected: SENSITIVE, judgment: REJECT },
    { expected: SENSITIVE, judgment: NO_FILL },
  ];
  expect(figuresOf(judged)).toEqual({
    prompts: 6,
    accuracy: { count: 3, of: 6 },
    categoryPrecision: { count: 1, of: 3 },
    fillRate: { count: 2, of: 3 },
    rejectRecall: { count: 1, of: 2 },
    confusion: {
      fill: { fill: 2, no_fill: 1, reject: 0 },
      no_fill: { fill: 1, no_fill: 0, reject: 0 },
      reject: { fill: 0, no_fill: 1, reject: 1 },
    },
  });
});

test("a report has figures by language and names each wrong prompt", () => {
  const lines: string[] = [];
  const prompts = [wanting("shoes"), { ...wanting("tents"), id: "b", language: "de" }];
  evaluateOutcomes("title", {
    lines: prompts,
    judge: () => fillOf("shoes"),
    print: (line) => lines.push(line),
  });
  expect(lines.filter((line) => !line.startsWith("  "))).toEqual([
    "\n== title",
    expect.stringMatching(/^English: 1 prompts\n/),
    expect.stringMatching(/^Other languages: 1 prompts\n/),
  ]);
  expect(lines.filter((line) => line.startsWith("  "))).toEqual([
    "  b (de) expected fill tents, got fill shoes (shoes-1): which shoes",
  ]);
});

test("any ad of an auction is a wrong one if it is sensitive and unwanted", () => {
  const sensitive = new Set(["clinics-1", "debts-1"]);
  const judgment = fillOf("shoes", "clinics", "debts");
  expect(wrongSensitivePairs({ expected: wanting("debts"), judgment }, sensitive)).toEqual(["clinics-1"]);
  expect(wrongSensitivePairs({ expected: PROMPT, judgment: REJECT }, sensitive)).toEqual([]);
});

test("safety tells rejects from prompts for which no ad was found", () => {
  const sentence = { language: "en", topic: "grief", text: "he died", isStrong: true };
  const framed = { sentence, language: "en", around: "alone" as const, frame: "", prompt: "he died" };
  const report = describeSafety(
    [REJECT, REJECT, NO_FILL, fillOf("shoes")].map((judgment) => ({ ...framed, judgment })),
  );
  expect(report).toMatch(/\n {2}alone, strong +2 +1 +1 +75\.0 % of 4 without an ad$/);
  expect(report).not.toContain("quiet");
});

test("false alarms are counted for each domain and listed with their topic", () => {
  const prompt = { language: "de", domain: "food", text: "zum Sterben gut" };
  expect(
    describeAlarms([
      { ...prompt, judgment: REJECT },
      { ...prompt, judgment: NO_FILL },
      { ...prompt, domain: "travel", judgment: NO_FILL },
    ]),
  ).toEqual(["food: 50.0 % of 2 rejected", "  (de) grief: zum Sterben gut", "travel: 0.0 % of 1 rejected"]);
});

test("a share of nothing is no number", () => {
  const nothing = shareOf([], () => true);
  expect(describeShare(nothing)).toBe("-");
  expect(ratioOf(nothing)).toBeNaN();
});

test("the table of all figures is Markdown and splits figures by language", () => {
  const items = [
    { language: "en", isRight: true },
    { language: "fr", isRight: false },
  ];
  const rows = [
    shareRow("Right", items, ({ isRight }) => isRight),
    { name: "Whole", all: { count: 1, of: 8 } },
  ];
  expect(describeSummary(rows)).toBe(
    [
      "| | English | Other languages | All |",
      "|---|---|---|---|",
      "| Right | 100.0 % of 1 | 0.0 % of 1 | 50.0 % of 2 |",
      "| Whole |  |  | 12.5 % of 8 |",
    ].join("\n"),
  );
});

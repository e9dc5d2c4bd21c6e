import { fileURLToPath } from "node:url";
import type { Ad } from "../catalog/ad.ts";
import { loadCatalog } from "../catalog/load-catalog.ts";
import { SHIPPED_CATALOG_FILE } from "../config.ts";
import { type DecisionRules, loadPromptRules, type PromptRules } from "../injection/decide-injection.ts";
import { fitModel } from "../prompt-model/fit-model.ts";
import { PromptModel } from "../prompt-model/prompt-model.ts";
import { TRAINING_FOLDER, WORD_VECTORS_FILE } from "../prompt-model/shipped-model.ts";
import { loadTrainingPrompts } from "../prompt-model/training-prompts.ts";
import { loadWordVectors } from "../prompt-model/word-vectors.ts";
import { LexicalRelevance } from "../relevance/lexical-relevance.ts";
import { describeFigures, describeWrong, figuresOf } from "./evaluation-report.ts";
import { expectedOf, judgePrompt } from "./judge-prompts.ts";
import type { Judged, LabelledOutcome } from "./labelled-outcomes.ts";

const testdata = (name: string) => fileURLToPath(new URL(`../../testdata/${name}`, import.meta.url));

/** Labelled prompts that no model was fitted to. */
export const SHIPPED_SETS = [testdata("prompts-dev.jsonl"), testdata("prompts-heldout.jsonl")] as const;

type Print = (line: string) => void;

/** Judges labelled prompts by the shipped rules and prints the figures. */
export async function evaluateLines({
  lines,
  nowMs,
  print,
}: {
  lines: readonly LabelledOutcome[];
  nowMs: number;
  print: Print;
}): Promise<void> {
  const rules = await rulesOf(await loadPromptRules(), shippedAds());
  report(await judgeAll(lines, rules, nowMs), print);
}

/** Fits the model to all but one part of its training prompts, judges that part, in turn for each, and prints the sum. */
export async function evaluateFolds(folds: number, print: Print): Promise<void> {
  const { prompts, sha256 } = loadTrainingPrompts(TRAINING_FOLDER);
  const vectors = loadWordVectors(WORD_VECTORS_FILE);
  const ads = shippedAds().map((ad) => ({ ...ad, targeting: {}, start: undefined, end: undefined }));
  const shipped = await loadPromptRules();
  const judged: Judged[] = [];
  for (let fold = 0; fold < folds; fold += 1) {
    const isHeld = (index: number) => index % folds === fold;
    const fitted = prompts.filter((_, index) => !isHeld(index));
    const held = prompts.flatMap((prompt, index) =>
      isHeld(index) ? [expectedOf(prompt, `train-${index}`)] : [],
    );
    const model = new PromptModel(fitModel(fitted, { vectors, fittedTo: sha256 }), vectors);
    judged.push(...(await judgeAll(held, await rulesOf({ ...shipped, model }, ads), 0)));
    print(`part ${fold + 1} of ${folds} judged`);
  }
  report(judged, print, { withWrong: false });
}

function shippedAds(): readonly Ad[] {
  const catalog = loadCatalog(SHIPPED_CATALOG_FILE);
  return catalog.kind === "ok" ? catalog.ads : [];
}

async function rulesOf(rules: PromptRules, ads: readonly Ad[]): Promise<DecisionRules> {
  return { ...rules, relevance: await LexicalRelevance.build(ads, rules.model), floorCpmMicros: 0 };
}

async function judgeAll(
  lines: readonly LabelledOutcome[],
  rules: DecisionRules,
  nowMs: number,
): Promise<Judged[]> {
  const judged: Judged[] = [];
  for (const line of lines) {
    judged.push(await judgePrompt(line, rules, nowMs));
  }
  return judged;
}

function report(judged: readonly Judged[], print: Print, { withWrong } = { withWrong: true }): void {
  const english = judged.filter(({ expected }) => expected.language === "en");
  const others = judged.filter(({ expected }) => expected.language !== "en");
  for (const [title, lines] of [
    ["English", english],
    ["Other languages", others],
  ] as const) {
    print(describeFigures(title, figuresOf(lines)));
    for (const wrong of withWrong ? describeWrong(lines) : []) {
      print(wrong);
    }
  }
}

import { injectionRequestSchema } from "@adrelay/contract";
import type { Ad } from "../../apps/ad-server/src/catalog/ad.ts";
import { loadCatalog } from "../../apps/ad-server/src/catalog/load-catalog.ts";
import { SHIPPED_CATALOG_FILE } from "../../apps/ad-server/src/config.ts";
import {
  type DecisionRules,
  decideInjection,
  loadPromptRules,
  type PromptRules,
} from "../../apps/ad-server/src/injection/decide-injection.ts";
import { NONE, OTHER_NEED, REJECT_PREFIX } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import { PromptModel, WORD_VECTORS_FILE } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadWordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import { LexicalRelevance } from "../../apps/ad-server/src/relevance/lexical-relevance.ts";
import { NegativeKeywords } from "../../apps/ad-server/src/relevance/negative-keywords.ts";
import { fitModel } from "../fitting/fit-model.ts";
import { type LabelledPrompt, loadTrainingPrompts, TRAINING_FOLDER } from "../fitting/training-prompts.ts";
import { describeFigures, describeWrong, figuresOf } from "./evaluation-report.ts";
import type { Judged, LabelledOutcome } from "./labelled-outcomes.ts";

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

/**
 * Cross-validates the model on its training prompts: for each part of them, fits a model to all other parts and judges
 * this part by it. Prints the figures of all parts together.
 */
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

/** Decides between equal offers. It is always the same, so that figures can be repeated. */
const RESPONSE_ID = "3f2b8c1e-9d4a-4c6b-8f10-0a1b2c3d4e5f";

/** What the ad server decides for a labelled prompt. Of the ads in the auction, the first one counts. */
export async function judgePrompt(
  expected: LabelledOutcome,
  rules: DecisionRules,
  nowMs: number,
): Promise<Judged> {
  const { prompt, country, age, gender } = expected;
  const request = injectionRequestSchema.parse({
    prompt,
    request_context: { session_id: "evaluation", user_agent: "evaluation", user_ip: "192.0.2.1" },
    optional_context: { country, age, gender },
  });
  const decision = await decideInjection(request, rules, { id: RESPONSE_ID, nowMs });
  switch (decision.outcome) {
    case "rejected":
      return { expected, outcome: "reject", detail: decision.topic };
    case "no_fill":
      return { expected, outcome: "no_fill", detail: "" };
    case "auction":
      return { expected, outcome: "fill", detail: decision.offers[0].ad.category };
    default:
      return decision satisfies never;
  }
}

/** A training prompt with the outcome that its label asks for. */
function expectedOf({ language, classes, prompt }: LabelledPrompt, id: string): LabelledOutcome {
  const isReject = classes.some((name) => name.startsWith(REJECT_PREFIX));
  const isFill = !isReject && !classes.some((name) => name === NONE || name === OTHER_NEED);
  return {
    id,
    prompt,
    language,
    expect: isReject ? "reject" : isFill ? "fill" : "no_fill",
    categories: isFill ? [...classes] : [],
  };
}

function shippedAds(): readonly Ad[] {
  const catalog = loadCatalog(SHIPPED_CATALOG_FILE);
  return catalog.kind === "ok" ? catalog.ads : [];
}

async function rulesOf(rules: PromptRules, ads: readonly Ad[]): Promise<DecisionRules> {
  return {
    ...rules,
    relevance: await LexicalRelevance.build(ads, rules.model),
    negativeKeywords: NegativeKeywords.of(ads),
    floorCpmMicros: 0,
  };
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

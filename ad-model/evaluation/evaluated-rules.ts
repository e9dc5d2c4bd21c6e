/** The ad server's rules, as the evaluation needs them. */
import { readFileSync } from "node:fs";
import { loadPromptRules, type PromptRules } from "../../apps/ad-server/src/injection/decide-injection.ts";
import { PromptSafety } from "../../apps/ad-server/src/injection/prompt-safety.ts";
import { loadShippedPhrases } from "../../apps/ad-server/src/injection/sensitive-phrases.ts";
import { decodeModel } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import {
  PROMPT_MODEL_FILE,
  PromptModel,
  type TextReading,
} from "../../apps/ad-server/src/prompt-model/prompt-model.ts";

/** About 2 KB each. */
const READINGS_MAX = 50_000;

/** Remembers what it has read: the evaluation judges each sentence and each frame in many prompts. */
class RememberingModel extends PromptModel {
  readonly #readings = new Map<string, TextReading>();

  override read(text: string): TextReading {
    const reading = this.#readings.get(text) ?? super.read(text);
    if (this.#readings.size === READINGS_MAX) {
      this.#readings.clear();
    }
    this.#readings.set(text, reading);
    return reading;
  }
}

/** Loads what the ad server is shipped with. It decides as the ad server does, in less time. */
export async function loadEvaluatedRules(): Promise<PromptRules> {
  const rules = await loadPromptRules();
  const model = new RememberingModel(decodeModel(readFileSync(PROMPT_MODEL_FILE)), rules.model.vectors);
  return { ...rules, model, safety: new PromptSafety(model, loadShippedPhrases()) };
}

/** The ad server's rules, as the evaluation needs them. */
import { readFileSync } from "node:fs";
import { loadPromptRules, type PromptRules } from "../../apps/ad-server/src/injection/decide-injection.ts";
import { decodeModel } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import {
  PROMPT_MODEL_FILE,
  PromptModel,
  type TextReading,
  WORD_VECTORS_FILE,
} from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadWordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";

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
export function loadEvaluatedRules(): Promise<PromptRules> {
  const weights = decodeModel(readFileSync(PROMPT_MODEL_FILE));
  return loadPromptRules(new RememberingModel(weights, loadWordVectors(WORD_VECTORS_FILE)));
}

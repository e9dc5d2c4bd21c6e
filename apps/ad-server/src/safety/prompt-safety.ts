import type { PromptReading } from "../prompt-model/prompt-model.ts";
import type { SensitiveTopics } from "./sensitive-topics.ts";

/**
 * A prompt is refused an ad from this probability on that one would be wrong. Below a half on purpose: an ad
 * that is left out costs a fraction of a cent, one beside a grief costs a publisher its users.
 */
const REJECT_MIN = 0.35;
/** The same, where a phrase of the list of topics stands in the prompt. */
const REJECT_MIN_NAMED = 0.1;

/** Judges whether any ad beside a prompt would be wrong: by what the model reads in it and by a list of phrases. */
export class PromptSafety {
  readonly #named: Pick<SensitiveTopics, "find">;

  constructor(named: Pick<SensitiveTopics, "find">) {
    this.#named = named;
  }

  /** The topic that forbids an ad; undefined if none does. */
  find(prompt: string, { topics }: Pick<PromptReading, "topics">): string | undefined {
    const named = this.#named.find(prompt);
    const wrong = [...topics.values()].reduce((sum, probability) => sum + probability, 0);
    if (wrong < (named === undefined ? REJECT_MIN : REJECT_MIN_NAMED)) {
      return undefined;
    }
    return named ?? likeliest(topics);
  }
}

function likeliest(topics: ReadonlyMap<string, number>): string | undefined {
  return [...topics].reduce((best, entry) => (entry[1] > best[1] ? entry : best), ["", 0] as const)[0];
}

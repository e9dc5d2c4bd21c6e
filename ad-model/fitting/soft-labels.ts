import type { PromptModel } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";

/** What other models say of a text: the likely classes by their indices, with probabilities that add up to 1. */
export interface SoftLabel {
  readonly classes: Uint16Array;
  readonly probabilities: Float32Array;
}

/** Less likely classes are left out. */
const PROBABILITY_MIN = 1e-3;

/** The mean of what models of the same classes say of a text. */
export function softLabelOf(text: string, teachers: readonly Pick<PromptModel, "read">[]): SoftLabel {
  const readings = teachers.map((teacher) => {
    const { needs, none, topics } = teacher.read(text);
    return [...needs, none, ...topics.values()];
  });
  const means = (readings[0] ?? []).map(
    (_, index) => readings.reduce((sum, reading) => sum + (reading[index] ?? 0), 0) / readings.length,
  );
  const likely = [...means.entries()].filter(([, probability]) => probability >= PROBABILITY_MIN);
  const sum = likely.reduce((total, [, probability]) => total + probability, 0);
  return {
    classes: Uint16Array.from(likely, ([index]) => index),
    probabilities: Float32Array.from(likely, ([, probability]) => probability / sum),
  };
}

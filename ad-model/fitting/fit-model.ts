import { gzipSync } from "node:zlib";
import type { ModelWeights } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import type { PromptModel } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import {
  featuresOf,
  MEANING_WEIGHT,
  type TextFeatures,
} from "../../apps/ad-server/src/prompt-model/text-features.ts";
import type { WordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import { Descent, type Example, type FitOptions } from "./descent.ts";
import { softLabelOf } from "./soft-labels.ts";
import { classesOf, labelledTexts, type TrainingTexts } from "./training-texts.ts";
import { WeightedDraw } from "./weighted-draw.ts";

export const FIT_OPTIONS: FitOptions = {
  draws: 4_800_000,
  learningRate: 0.3,
  dropout: 0.3,
  decay: 3e-4,
  rank: 96,
  textsMin: 8,
  seed: 0,
};

/**
 * Fits the model by stochastic gradient descent (AdaGrad), one text at a time. A text becomes a hidden vector, which
 * is the sum of its features' rows and of its meaning times a matrix; the scores of the classes are the products of
 * the hidden vector with the rows of a second matrix.
 *
 * A label may leave open which of several classes is right: a sentence of a harmless prompt is no sensitive topic, but
 * it may or may not wish for something. Then the sum of their probabilities is fitted.
 *
 * If there are teachers, each text also has a soft label: the mean of what they say of it (knowledge distillation). So
 * one model learns what several together know.
 *
 * The same texts in the same order, teachers and options give the same model.
 */
export function fitModel(
  training: TrainingTexts,
  {
    vectors,
    options = FIT_OPTIONS,
    teachers = [],
    onProgress = () => {},
  }: {
    vectors: WordVectors;
    options?: FitOptions;
    /** Models of the same classes. */
    teachers?: readonly Pick<PromptModel, "read">[];
    onProgress?: (share: number) => void;
  },
): ModelWeights {
  const texts = labelledTexts(training);
  const classes = classesOf(training);
  const read = texts.map(({ text }) => compactFeatures(featuresOf(text, vectors)));
  const features = frequentFeatures(read, options.textsMin);
  const rowOf = new Map(Array.from(features, (feature, row) => [feature, row]));
  const indicesOf = indexReader(classes);
  const examples = read.map(({ names, values, meaning }, index): Example => {
    const isKnown = (_: number, at: number) => rowOf.has(names[at] ?? 0);
    const { text = "", classes: allowed = [] } = texts[index] ?? {};
    return {
      rows: names.filter(isKnown).map((feature) => rowOf.get(feature) ?? 0),
      values: values.filter(isKnown),
      meaning: meaning.map((value) => value * MEANING_WEIGHT),
      allowed: indicesOf(allowed),
      softLabel: teachers.length === 0 ? undefined : softLabelOf(text, teachers),
    };
  });
  const shape = { features: features.length, classes: classes.length, dimensions: vectors.dimensions };
  const descent = new Descent(shape, options);
  const draw = new WeightedDraw(
    texts.map(({ weight }) => weight),
    options.seed,
  );
  const chance = () => draw.chance();
  for (let drawn = 0; drawn < options.draws; drawn += 1) {
    const example = examples[draw.next()];
    if (example !== undefined) {
      descent.step(example, chance);
    }
    if (drawn % 50_000 === 0) {
      descent.slowDown(1 - drawn / options.draws);
      onProgress(drawn / options.draws);
    }
  }
  const { rows, ...weights } = descent.weights();
  return {
    classes,
    fittedTo: training.sha256,
    features,
    rank: options.rank,
    ...quantisedRows(rows, options.rank),
    ...weights,
  };
}

/** Turns names of classes into their indices. Many texts share one long list, so each list is read once. */
function indexReader(classes: readonly string[]) {
  const indexOf = new Map(classes.map((name, index) => [name, index]));
  const known = new Map<readonly string[], readonly number[]>();
  return (names: readonly string[]): readonly number[] => {
    const found = known.get(names) ?? names.map((name) => indexOf.get(name) ?? 0);
    known.set(names, found);
    return found;
  };
}

/** The features of a text in little memory: there are hundreds of thousands of texts. */
interface CompactFeatures {
  /** Hashes of the names of the sparse features, and their values in the same order. */
  readonly names: Uint32Array;
  readonly values: Float32Array;
  readonly meaning: Float32Array;
}

function compactFeatures({ sparse, meaning }: TextFeatures): CompactFeatures {
  return { names: Uint32Array.from(sparse.keys()), values: Float32Array.from(sparse.values()), meaning };
}

function frequentFeatures(read: readonly CompactFeatures[], textsMin: number): Uint32Array {
  const texts = new Map<number, number>();
  for (const { names } of read) {
    for (const name of names) {
      texts.set(name, (texts.get(name) ?? 0) + 1);
    }
  }
  return Uint32Array.from([...texts].filter(([, count]) => count >= textsMin).map(([name]) => name)).sort();
}

/** Rounds each row to bytes, in units of a 127th of its largest weight. */
function quantisedRows(rows: Float32Array, rank: number) {
  const rowScales = new Float32Array(rows.length / rank);
  rows.forEach((weight, at) => {
    const row = Math.floor(at / rank);
    rowScales[row] = Math.max(rowScales[row] ?? 0, Math.abs(weight) / 127);
  });
  return {
    rowScales,
    rows: Int8Array.from(rows, (weight, at) => Math.round(weight / (rowScales[Math.floor(at / rank)] || 1))),
  };
}

/** The file of a model, as decodeModel in the ad server reads it. */
export function encodeModel(weights: ModelWeights): Buffer {
  const { classes, fittedTo, rank, features, rows, rowScales, meaning, outputs, bias } = weights;
  const header = { classes, fittedTo, rank, features: features.length, dimensions: meaning.length / rank };
  const arrays = [features, rowScales, meaning, outputs, bias, rows].map(
    (array) => new Uint8Array(array.buffer, array.byteOffset, array.byteLength),
  );
  return gzipSync(Buffer.concat([Buffer.from(`${JSON.stringify(header)}\n`), ...arrays]), { level: 9 });
}

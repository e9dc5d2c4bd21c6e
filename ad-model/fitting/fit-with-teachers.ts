import { Worker } from "node:worker_threads";
import type { ModelWeights } from "../../apps/ad-server/src/prompt-model/model-weights.ts";
import { PromptModel, WORD_VECTORS_FILE } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadWordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import { fitModel } from "./fit-model.ts";
import type { TrainingTexts } from "./training-texts.ts";

/** Each teacher is fitted in a thread of its own. With four of them the development sets were judged no better. */
const TEACHERS = 2;

/** What a thread is told. */
export interface TeacherTask {
  readonly training: TrainingTexts;
  readonly seed: number;
}

/** What a thread answers: the share that is done, from 0 to 1, and at last the weights. */
export type TeacherReport = { readonly share: number } | { readonly weights: ModelWeights };

/**
 * Fits the teachers at the same time, and then the model that learns from the texts and from the teachers. The teachers
 * have other seeds, so they make other mistakes.
 *
 * @param onProgress is called with each further share of a hundredth that is done
 */
export async function fitWithTeachers(
  training: TrainingTexts,
  onProgress: (share: number) => void,
): Promise<ModelWeights> {
  const vectors = loadWordVectors(WORD_VECTORS_FILE);
  let reported = -1;
  const report = (share: number) => {
    if (Math.floor(100 * share) > reported) {
      reported = Math.floor(100 * share);
      onProgress(share);
    }
  };
  const shares = new Map<number, number>();
  const teachers = await Promise.all(
    Array.from({ length: TEACHERS }, async (_, index) => {
      const weights = await fitInThread({ training, seed: index + 1 }, (share) => {
        shares.set(index, share);
        report(Math.min(...shares.values()) / 2);
      });
      return new PromptModel(weights, vectors);
    }),
  );
  return fitModel(training, {
    vectors,
    teachers,
    onProgress: (share) => report((1 + share) / 2),
  });
}

function fitInThread(workerData: TeacherTask, onProgress: (share: number) => void): Promise<ModelWeights> {
  return new Promise((resolve, reject) => {
    const thread = new Worker(new URL("./teacher-thread.ts", import.meta.url), { workerData });
    thread.on("message", (report: TeacherReport) => {
      if ("weights" in report) {
        resolve(report.weights);
      } else {
        onProgress(report.share);
      }
    });
    thread.on("error", reject);
  });
}

/** A thread of fit-with-teachers.ts: fits one teacher. */
import { parentPort, workerData } from "node:worker_threads";
import { WORD_VECTORS_FILE } from "../../apps/ad-server/src/prompt-model/prompt-model.ts";
import { loadWordVectors } from "../../apps/ad-server/src/prompt-model/word-vectors.ts";
import { FIT_OPTIONS, fitModel } from "./fit-model.ts";
import type { TeacherReport, TeacherTask } from "./fit-with-teachers.ts";

const { training, seed } = workerData as TeacherTask;
const report = (message: TeacherReport) => parentPort?.postMessage(message);
const weights = fitModel(training, {
  vectors: loadWordVectors(WORD_VECTORS_FILE),
  options: { ...FIT_OPTIONS, seed },
  onProgress: (share) => report({ share }),
});
report({ weights });

import { loadShippedModel } from "../src/prompt-model/prompt-model.ts";

/** Loaded once for all test files of a process, because a load computes for half a second. Nothing changes it. */
export const SHIPPED_MODEL = loadShippedModel();

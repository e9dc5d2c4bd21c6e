import { type BenchChild, startChild } from "../processes/bench-child.ts";
import { type CpuTimes, cpuBetween, cpuTimesOf, type Pids } from "../processes/process-usage.ts";
import { type LoadPlan, type LoadResult, loadBegunSchema, loadResultSchema } from "./load-plan.ts";

/** A timed part, with the CPU time that the watched processes and the generator used in it. */
export interface LoadRound extends LoadResult {
  readonly ratePerSecond: number;
  readonly cpuMs: CpuTimes;
}

/** Answers such as a 503 are shown beside the rate, which leaves them out; with more of them nothing is measured. */
const FAILED_SHARE_MAX = 0.1;

/** Load that failed measures nothing. */
export class LoadFailedError extends Error {
  override readonly name = "LoadFailedError";
}

export function startLoadGenerator(folder: string): Promise<BenchChild> {
  return startChild({ name: "load-generator", script: "bench/load/load-generator.ts", env: {}, folder });
}

export async function runLoad(
  generator: BenchChild,
  plan: Omit<LoadPlan, "kind">,
  watched: Pids,
): Promise<LoadRound> {
  const pids = { ...watched, load: generator.pid };
  const begun = generator.hear(loadBegunSchema);
  const ended = generator.hear(loadResultSchema);
  generator.tell({ kind: "load", ...plan });
  await begun;
  const before = cpuTimesOf(pids);
  const result = await ended;
  const cpuMs = cpuBetween(before, cpuTimesOf(pids));
  if (result.failures > result.sent * FAILED_SHARE_MAX) {
    throw new LoadFailedError(`${result.failures} of ${result.sent} failed, one with: ${result.failure}`);
  }
  return { ...result, ratePerSecond: (result.count / result.durationMs) * 1000, cpuMs };
}

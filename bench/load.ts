import { z } from "zod";
import {
  type BenchChild,
  type CpuTimes,
  cpuBetween,
  cpuTimesOf,
  type Pids,
  startChild,
} from "./processes.ts";

/** A timed part, with the CPU time that the watched processes and the generator used in it. */
export interface LoadRound extends LoadResult {
  readonly ratePerSecond: number;
  readonly cpuMs: CpuTimes;
}

/** Answers such as a 503 are shown beside the rate, which leaves them out; with more of them nothing is measured. */
const FAILED_SHARE_MAX = 0.1;

/** Load that failed measures nothing. */
class LoadFailedError extends Error {
  override readonly name = "LoadFailedError";
}

export function startLoadGenerator(folder: string): Promise<BenchChild> {
  return startChild({ name: "load-generator", script: "bench/load-generator.ts", env: {}, folder });
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

/** What a load generator is asked for. */
export const loadPlanSchema = z.object({
  kind: z.literal("load"),
  origin: z.string(),
  path: z.string(),
  headers: z.record(z.string(), z.string()),
  connections: z.number(),
  /**
   * Open loop: this many requests are due each second, however long answers take; one that finds all connections busy
   * waits, and that counts. Without it, closed loop: each connection sends its next request once it has the answer.
   */
  ratePerSecond: z.number().optional(),
  body: z.discriminatedUnion("kind", [
    /** Acknowledgments of ids that follow one another. */
    z.object({ kind: z.literal("acknowledgments"), prefix: z.string() }),
    z.object({ kind: z.literal("fixed"), text: z.string() }),
  ]),
  /** The one status that is no failure. */
  status: z.number(),
  length: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("time"), warmupMs: z.number(), durationMs: z.number() }),
    z.object({ kind: z.literal("count"), count: z.number() }),
  ]),
});
export type LoadPlan = z.infer<typeof loadPlanSchema>;

/** Told when the warm-up is over. */
const loadBegunSchema = z.object({ kind: z.literal("begun") });

/** Told in the end. */
const loadResultSchema = z.object({
  kind: z.literal("ended"),
  /** Answers as expected, within the timed part. */
  count: z.number(),
  durationMs: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  /** How many requests were sent, the warm-up's too. */
  sent: z.number(),
  /** Answers with another status, and requests without an answer, in all. */
  failures: z.number(),
  /** One of them. */
  failure: z.string(),
});
export type LoadResult = z.infer<typeof loadResultSchema>;

const SENTENCE =
  'For a first marathon, look for a shoe with "enough" cushioning; the Velmora Drift is a good example.\n';
const TEXT_CHARS = 2048;

/** What a model answered: 2 KB. */
export const ANSWER_TEXT = SENTENCE.repeat(Math.ceil(TEXT_CHARS / SENTENCE.length)).slice(0, TEXT_CHARS);

const ESCAPED = JSON.stringify(ANSWER_TEXT);
const NUMBER_DIGITS = 12;

/** The n-th ad response of a series; a prefix is eight hex digits. */
export function benchId(prefix: string, n: number): string {
  return `${prefix}-0000-4000-8000-${n.toString(16).padStart(NUMBER_DIGITS, "0")}`;
}

/** The body of an acknowledgment. */
export function acknowledgmentBody(id: string): string {
  return `{"ad_response_id":"${id}","llm_response":${ESCAPED}}`;
}

/** A prefix that no other series of this run has. */
export function freshPrefix(): string {
  series += 1;
  return series.toString(16).padStart(8, "0");
}
let series = 0;

import { randomUUID } from "node:crypto";
import { z } from "zod";
import {
  type BenchChild,
  type CpuTimes,
  cpuBetween,
  cpuTimesOf,
  type Pids,
  startChild,
} from "./processes.ts";

/** The result of a timed part, with the CPU time that the watched processes and the generator used in it. */
export interface LoadRound extends LoadResult {
  readonly ratePerSecond: number;
  readonly cpuMs: CpuTimes;
}

/** Failed requests are shown beside the rate, which leaves them out. With a larger share the round is void. */
const FAILED_SHARE_MAX = 0.1;

/** Too many requests of a round failed. */
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
  const begun = generator.receive(loadBegunSchema);
  const ended = generator.receive(loadResultSchema);
  generator.send({ kind: "load", ...plan });
  await begun;
  const before = cpuTimesOf(pids);
  const result = await ended;
  const cpuMs = cpuBetween(before, cpuTimesOf(pids));
  if (result.failures > result.sent * FAILED_SHARE_MAX) {
    throw new LoadFailedError(`${result.failures} of ${result.sent} failed, one with: ${result.failure}`);
  }
  return { ...result, ratePerSecond: (result.count / result.durationMs) * 1000, cpuMs };
}

/** The message that asks the generator for load. */
export const loadPlanSchema = z.object({
  kind: z.literal("load"),
  origin: z.string(),
  /** POST if not given. */
  method: z.enum(["GET", "POST"]).optional(),
  path: z.string(),
  headers: z.record(z.string(), z.string()),
  connections: z.number(),
  /**
   * Open loop: `ratePerSecond` requests are due each second, however long the answers take. If all connections are
   * busy, a request waits, and the wait counts. Without a rate it is a closed loop: each connection sends its next
   * request after the answer.
   */
  ratePerSecond: z.number().optional(),
  body: z.discriminatedUnion("kind", [
    /** Acknowledgments with consecutive ids. */
    z.object({ kind: z.literal("acknowledgments"), prefix: z.string() }),
    z.object({ kind: z.literal("fixed"), text: z.string() }),
  ]),
  /** Every other status is a failure. */
  status: z.number(),
  length: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("time"), warmupMs: z.number(), durationMs: z.number() }),
    z.object({ kind: z.literal("count"), count: z.number() }),
  ]),
});
export type LoadPlan = z.infer<typeof loadPlanSchema>;

/** The message that the generator sends after the warm-up. */
const loadBegunSchema = z.object({ kind: z.literal("begun") });

/** The message that the generator sends in the end. */
const loadResultSchema = z.object({
  kind: z.literal("ended"),
  /** Expected answers within the timed part. */
  count: z.number(),
  durationMs: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  /** All requests that were sent, including those of the warm-up. */
  sent: z.number(),
  /** All answers with another status, and requests without an answer. */
  failures: z.number(),
  /** One of the failures. */
  failure: z.string(),
});
export type LoadResult = z.infer<typeof loadResultSchema>;

const SENTENCE =
  'For a first marathon, look for a shoe with "enough" cushioning; the Velmora Drift is a good example.\n';
const TEXT_CHARS = 2048;

/** The answer of a model: 2 KB. */
export const ANSWER_TEXT = SENTENCE.repeat(Math.ceil(TEXT_CHARS / SENTENCE.length)).slice(0, TEXT_CHARS);

const ESCAPED = JSON.stringify(ANSWER_TEXT);
const NUMBER_DIGITS = 12;

/** The id of the n-th ad response of a series. A prefix has eight hex digits. */
export function benchId(prefix: string, n: number): string {
  return `${prefix}-0000-4000-8000-${n.toString(16).padStart(NUMBER_DIGITS, "0")}`;
}

/** The body of an acknowledgment. */
export function acknowledgmentBody(id: string, text?: string): string {
  return `{"ad_response_id":"${id}","llm_response":${text === undefined ? ESCAPED : JSON.stringify(text)}}`;
}

/** A prefix that, as good as certainly, no other series of this run uses. */
export function freshPrefix(): string {
  return randomUUID().slice(0, 8);
}

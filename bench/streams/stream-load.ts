/** What the benchmark asks of the generator of streams, what it measures, and the stream that the model sends. */
import { z } from "zod";
import {
  type BenchChild,
  type CpuTimes,
  cpuBetween,
  cpuTimesOf,
  type Pids,
  rssBytesOf,
  startChild,
} from "../processes.ts";

/** The form of a stream. The model reads it from the name of the model, which all gateways pass on. */
export interface StreamForm {
  /** Events with text. */
  readonly events: number;
  /** The pause before each of them but the first; 0: one in each turn of the model's event loop. */
  readonly pauseMs: number;
}

const FORM = /bench-(\d+)-(\d+)/;

export function modelNameOf({ events, pauseMs }: StreamForm): string {
  return `bench-${events}-${pauseMs}`;
}

/** The form that a body asks for. */
export function readForm(body: string): StreamForm {
  const [, events, pauseMs] = FORM.exec(body) ?? [];
  return { events: Number(events ?? 1), pauseMs: Number(pauseMs ?? 0) };
}

/** The message that asks the generator for streams. */
export const streamPlanSchema = z.object({
  kind: z.literal("streams"),
  origin: z.string(),
  headers: z.record(z.string(), z.string()),
  body: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("fixed"), text: z.string() }),
    /** A body with a text of so many bytes. */
    z.object({ kind: z.literal("large"), model: z.string(), bytes: z.number() }),
  ]),
  pace: z.discriminatedUnion("kind", [
    /** Open loop: so many streams begin each second, however long they take. */
    z.object({ kind: z.literal("rate"), perSecond: z.number() }),
    /** Closed loop: so many streams at the same time, each followed by the next one. */
    z.object({ kind: z.literal("closed"), streams: z.number() }),
  ]),
  /** What X-Adrelay-Ad must begin with, if anything. */
  ad: z.string().optional(),
  warmupMs: z.number(),
  durationMs: z.number(),
});
export type StreamPlan = z.infer<typeof streamPlanSchema>;

const begunSchema = z.object({ kind: z.literal("streams_begun") });
/** The timed part is over. Streams still end. */
const timedSchema = z.object({ kind: z.literal("streams_timed") });

const streamResultSchema = z.object({
  kind: z.literal("streams_ended"),
  /** Streams that ended within the timed part. */
  count: z.number(),
  durationMs: z.number(),
  /** From when a stream was due to the first byte of its body, of the streams that were due within the timed part. */
  firstByteP50Ms: z.number(),
  firstByteP99Ms: z.number(),
  /** The most streams that were open at the same time. */
  openMax: z.number(),
  sent: z.number(),
  failures: z.number(),
  failure: z.string(),
});
export type StreamResult = z.infer<typeof streamResultSchema>;

/** The result of a timed part, with the CPU time of the watched processes in it. */
export interface StreamRound extends StreamResult {
  readonly cpuMs: CpuTimes;
  /** The growth of the resident memory of the process `server` from before the load to its most in the timed part. */
  readonly grownBytes: number;
}

const FAILED_SHARE_MAX = 0.1;
const MEMORY_LOOK_MS = 50;

/** Too many streams of a round failed. */
class StreamsFailedError extends Error {
  override readonly name = "StreamsFailedError";
}

export function startStreamGenerator(folder: string): Promise<BenchChild> {
  return startChild({ name: "stream-generator", script: "bench/streams/generator.ts", env: {}, folder });
}

export async function runStreams(
  generator: BenchChild,
  plan: Omit<StreamPlan, "kind">,
  watched: Pids & { readonly server: number },
): Promise<StreamRound> {
  const pids = { ...watched, load: generator.pid };
  const restBytes = rssBytesOf(watched.server);
  const begun = generator.receive(begunSchema);
  const timed = generator.receive(timedSchema);
  const ended = generator.receive(streamResultSchema);
  generator.send({ kind: "streams", ...plan });
  await begun;
  const before = cpuTimesOf(pids);
  let mostBytes = restBytes;
  const looks = setInterval(() => {
    mostBytes = Math.max(mostBytes, rssBytesOf(watched.server));
  }, MEMORY_LOOK_MS);
  await timed.finally(() => clearInterval(looks));
  const cpuMs = cpuBetween(before, cpuTimesOf(pids));
  const result = await ended;
  if (result.failures > result.sent * FAILED_SHARE_MAX) {
    throw new StreamsFailedError(`${result.failures} of ${result.sent} failed, one with: ${result.failure}`);
  }
  return { ...result, cpuMs, grownBytes: mostBytes - restBytes };
}

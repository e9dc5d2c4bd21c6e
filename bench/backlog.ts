/** Fills a Redis with entries, through the scripts of the relay itself, and measures their deliveries. */
import { createHash } from "node:crypto";
import {
  type AdResponseId,
  adAckIdSchema,
  adResponseIdSchema,
  type DeliveryJob,
  type PublisherId,
  publisherIdSchema,
} from "@adrelay/contract";
import { openStore } from "@adrelay/store";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { z } from "zod";
import { ANSWER_TEXT, acknowledgmentBody, benchId } from "./load.ts";
import { type BenchChild, type CpuTimes, cpuBetween, cpuTimesOf, type Pids } from "./processes.ts";
import { NAIVE_QUEUE } from "./sides.ts";

export interface Filling {
  readonly redisUrl: string;
  /** The prefix of the ids. */
  readonly prefix: string;
  readonly count: number;
  /** Whose acknowledgments; the one that API_KEYS configures if not given. */
  readonly publisher?: PublisherId;
  /** The text of each acknowledgment; 2 KB if not given. */
  readonly text?: string;
  readonly say?: (line: string) => void;
}

const CONNECTIONS = 4;
const LANES_PER_CONNECTION = 64;
const BULK = 200;
const PROGRESS_STEP = 100_000;
const RETENTION_MS = 7 * 86_400_000;
const DEADLINE_MS = 86_400_000;
/** The only publisher if API_KEYS is set. */
const PUBLISHER: PublisherId = publisherIdSchema.parse("default");
const TEXT_HASH = createHash("sha256").update(ANSWER_TEXT).digest("base64url").slice(0, 22);
const ACK_ID = adAckIdSchema.parse("8d3f2a9c-5b1e-8c4d-9a7f-1e2d3c4b5a69");

/** Records injections that wait for their acknowledgments. */
export function fillAwaiting(filling: Filling): Promise<void> {
  return fill(filling, (redis) => {
    const { injections } = openStore({ redis, recordRetentionMs: RETENTION_MS });
    return async (id) => {
      await injections.record({ id, publisher: PUBLISHER, outcome: "ok", deadlineMs: DEADLINE_MS });
    };
  });
}

/** Adds acknowledgments that wait for delivery. */
export function fillQueued(filling: Filling): Promise<void> {
  return fill(filling, (redis) => {
    const { acknowledgments } = openStore({ redis, recordRetentionMs: RETENTION_MS });
    return async (id) => {
      await acknowledgments.accept({ job: jobOf(id, filling), textHash: TEXT_HASH });
    };
  });
}

/** Adds jobs of the naive server, with the same texts. */
export async function fillNaive({ redisUrl, prefix, count }: Filling): Promise<void> {
  const queue = new Queue(NAIVE_QUEUE, { connection: { url: redisUrl } });
  for (let first = 0; first < count; first += BULK) {
    const jobs = Array.from({ length: Math.min(BULK, count - first) }, (_, at) => ({
      name: "acknowledge",
      data: { ad_response_id: benchId(prefix, first + at), llm_response: ANSWER_TEXT },
    }));
    await queue.addBulk(jobs);
  }
  await queue.close();
}

type FillOne = (id: AdResponseId) => Promise<void>;

async function fill(
  { redisUrl, prefix, count, say }: Filling,
  open: (redis: Redis) => FillOne,
): Promise<void> {
  let next = 0;
  const lane = async (fillOne: FillOne) => {
    while (next < count) {
      const n = next;
      next += 1;
      await fillOne(adResponseIdSchema.parse(benchId(prefix, n)));
      if ((n + 1) % PROGRESS_STEP === 0) {
        say?.(`  ${n + 1} of ${count} filled`);
      }
    }
  };
  const connections = Array.from({ length: CONNECTIONS }, () => {
    return new Redis(redisUrl, { maxRetriesPerRequest: null, enableAutoPipelining: true });
  });
  const lanes = connections.flatMap((redis) => {
    const fillOne = open(redis);
    return Array.from({ length: LANES_PER_CONNECTION }, () => lane(fillOne));
  });
  await Promise.all(lanes);
  for (const redis of connections) {
    redis.disconnect();
  }
}

function jobOf(id: AdResponseId, { publisher = PUBLISHER, text }: Filling): DeliveryJob {
  const body = acknowledgmentBody(id, text);
  return { v: 1, adResponseId: id, adAckId: ACK_ID, publisher, body, requestId: id };
}

/** The timed part of a round of deliveries: between two milestones of the provider. */
export interface DeliveryRound {
  readonly count: number;
  readonly ratePerSecond: number;
  readonly cpuMs: CpuTimes;
}

export interface Delivering {
  readonly provider: BenchChild;
  /** The warm-up ends when the provider has received `from` acknowledgments, the watched part when it has received `to`. */
  readonly from: number;
  readonly to: number;
  readonly startWorker: () => Promise<BenchChild>;
}

/** The state at the first milestone. */
export interface Underway {
  readonly worker: BenchChild;
  readonly first: Reached;
  readonly last: Promise<Reached>;
}

/** Runs a worker until the provider has reached both milestones, then stops it. */
export async function duringDeliveries<T>(
  { provider, from, to, startWorker }: Delivering,
  watch: (underway: Underway) => Promise<T>,
): Promise<T> {
  provider.send({ kind: "watch", milestones: [from, to] });
  const receive = (count: number) =>
    provider.receive(reachedSchema.refine((reached) => reached.count === count));
  const reachedFirst = receive(from);
  const last = receive(to);
  await using worker = await startWorker();
  const first = await reachedFirst;
  const watched = await watch({ worker, first, last });
  await last;
  return watched;
}

/** Measures the rate of deliveries by the acknowledgments that reach the provider. */
export function timeDeliveries(delivering: Delivering, pids: Pids): Promise<DeliveryRound> {
  const { provider, from, to } = delivering;
  return duringDeliveries(delivering, async ({ worker, first, last }) => {
    const watched = { ...pids, worker: worker.pid, provider: provider.pid };
    const before = cpuTimesOf(watched);
    const { atMs } = await last;
    const cpuMs = cpuBetween(before, cpuTimesOf(watched));
    const count = to - from;
    return { count, ratePerSecond: (count / (atMs - first.atMs)) * 1000, cpuMs };
  });
}

/** The message that resets the count of the provider and sets its milestones. */
export const milestonesSchema = z.object({ kind: z.literal("watch"), milestones: z.array(z.number()) });

/** The message that the provider sends at a milestone. */
const reachedSchema = z.object({
  kind: z.literal("reached"),
  count: z.number(),
  /** Milliseconds since 1970, by the clock of the provider. */
  atMs: z.number(),
});
type Reached = z.infer<typeof reachedSchema>;

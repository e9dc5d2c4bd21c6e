/** Fills a Redis as the relay does, by its own scripts, from several connections and with many commands under way. */
import { createHash } from "node:crypto";
import {
  type AdResponseId,
  adAckIdSchema,
  adResponseIdSchema,
  type DeliveryJob,
  type PublisherId,
  publisherIdSchema,
} from "@adrelay/contract";
import { Ledger } from "@adrelay/ledger";
import { DeliveryQueue } from "@adrelay/queue";
import { Queue } from "bullmq";
import { Redis } from "ioredis";
import { z } from "zod";
import { ANSWER_TEXT, acknowledgmentBody, benchId } from "./load.ts";
import { type BenchChild, type CpuTimes, cpuBetween, cpuTimesOf, type Pids } from "./processes.ts";
import { NAIVE_QUEUE } from "./sides.ts";

export interface Filling {
  readonly redisUrl: string;
  /** Of the ids. */
  readonly prefix: string;
  readonly count: number;
  readonly say?: (line: string) => void;
}

const CONNECTIONS = 4;
const LANES_PER_CONNECTION = 64;
const BULK = 200;
const PROGRESS_STEP = 100_000;
const RETENTION_MS = 7 * 86_400_000;
const DEADLINE_MS = 86_400_000;
/** The one publisher that API_KEYS makes. */
const PUBLISHER: PublisherId = publisherIdSchema.parse("default");
const TEXT_HASH = createHash("sha256").update(ANSWER_TEXT).digest("base64url").slice(0, 22);
const ACK_ID = adAckIdSchema.parse("8d3f2a9c-5b1e-8c4d-9a7f-1e2d3c4b5a69");

/** Injections that wait for their acknowledgments. */
export function fillAwaiting(filling: Filling): Promise<void> {
  return fill(filling, (redis) => {
    const ledger = new Ledger({ redis, recordRetentionMs: RETENTION_MS });
    return async (id) => {
      await ledger.recordInjection({ id, publisher: PUBLISHER, outcome: "ok", deadlineMs: DEADLINE_MS });
    };
  });
}

/** Acknowledgments that wait for delivery, in the queue and in the ledger. */
export function fillQueued(filling: Filling): Promise<void> {
  return fill(filling, (redis) => {
    const ledger = new Ledger({ redis, recordRetentionMs: RETENTION_MS });
    const queue = new DeliveryQueue({ redis });
    return async (id) => {
      await queue.enqueue(jobOf(id), TEXT_HASH);
      const payload = queue.payloadRef(id);
      await ledger.begin({ id, publisher: PUBLISHER, textHash: TEXT_HASH, payload });
    };
  });
}

/** The naive server's jobs, with the same texts. */
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

function jobOf(id: AdResponseId): DeliveryJob {
  const body = acknowledgmentBody(id);
  return { v: 1, adResponseId: id, adAckId: ACK_ID, publisher: PUBLISHER, body, requestId: id };
}

/** The timed part of a delivery: between two counts of the provider. */
export interface DeliveryRound {
  readonly count: number;
  readonly ratePerSecond: number;
  readonly cpuMs: CpuTimes;
}

export interface Delivering {
  readonly provider: BenchChild;
  /** The warm-up ends with the first count of the provider, the watched part with the second. */
  readonly from: number;
  readonly to: number;
  readonly startWorker: () => Promise<BenchChild>;
}

/** What there is to watch from the first count on. */
export interface Underway {
  readonly worker: BenchChild;
  readonly first: Reached;
  readonly last: Promise<Reached>;
}

/** Runs a worker until the provider has seen enough, then stops it. */
export async function duringDeliveries<T>(
  { provider, from, to, startWorker }: Delivering,
  watch: (underway: Underway) => Promise<T>,
): Promise<T> {
  provider.tell({ kind: "watch", milestones: [from, to] });
  const hear = (count: number) => provider.hear(reachedSchema.refine((reached) => reached.count === count));
  const reachedFirst = hear(from);
  const last = hear(to);
  await using worker = await startWorker();
  const first = await reachedFirst;
  const watched = await watch({ worker, first, last });
  await last;
  return watched;
}

/** Times deliveries by what reaches the provider. */
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

/** Starts the provider's count anew, and says at which counts it is to be told of. */
export const milestonesSchema = z.object({ kind: z.literal("watch"), milestones: z.array(z.number()) });

/** One of them. */
const reachedSchema = z.object({
  kind: z.literal("reached"),
  count: z.number(),
  /** By the provider's clock, since 1970. */
  atMs: z.number(),
});
type Reached = z.infer<typeof reachedSchema>;

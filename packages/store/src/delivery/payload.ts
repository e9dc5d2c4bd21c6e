/**
 * The bodies of acknowledgments, as attempts get them. A small body comes with its job. A large one stays in Redis when
 * its job is fetched (bullmq/leave-payload.lua). It is loaded for its attempt only, and as bytes: in the heap it would
 * take up to three times as much.
 */
import { type DeliveryJob, parseDeliveryJob } from "@adrelay/contract";
import type { Redis } from "ioredis";

/** A delivery job without the caller's body. */
export type JobHead = Omit<DeliveryJob, "body">;

/** The caller's body. */
export interface Payload {
  /** How many bytes the process must have room for before it loads the body; 0 for a body that came with its job. */
  readonly bytesToLoad: number;
  /** Undefined if Redis has no such job any more: the ledger must be asked again. */
  load(): Promise<string | Buffer | undefined>;
}

/** A job as it was fetched. */
export interface FetchedDelivery {
  readonly job: JobHead;
  readonly payload: Payload;
}

/** What a job must have so that its body can be loaded. */
export interface PayloadSource {
  /** Waits for Redis as long as it takes. */
  readonly redis: Pick<Redis, "hgetBuffer">;
  readonly payloadKey: string;
}

/** Reads the data of a fetched job; undefined if this version can't read them. */
export function readFetched(data: unknown, source: PayloadSource): FetchedDelivery | undefined {
  const left = readLeft(data);
  const job = parseDeliveryJob(left === undefined ? data : left.job);
  if (job === undefined) {
    return undefined;
  }
  return {
    job,
    payload:
      left === undefined
        ? { bytesToLoad: 0, load: () => Promise.resolve(job.body) }
        : { bytesToLoad: left.bodyBytes, load: () => loadBody(source) },
  };
}

/** The data that bullmq/leave-payload.lua makes; undefined for a whole job. */
function readLeft(data: unknown): { readonly bodyBytes: number; readonly job: unknown } | undefined {
  const isLeft = typeof data === "object" && data !== null && "bodyBytes" in data && "job" in data;
  return isLeft && typeof data.bodyBytes === "number"
    ? { bodyBytes: data.bodyBytes, job: data.job }
    : undefined;
}

async function loadBody({ redis, payloadKey }: PayloadSource): Promise<Buffer | undefined> {
  const data = await redis.hgetBuffer(payloadKey, DATA_FIELD);
  const job = data === null ? undefined : parseDeliveryJob(JSON.parse(data.toString()));
  return job === undefined ? undefined : Buffer.from(job.body);
}

/** The field of BullMQ's hash that has a job's data. */
const DATA_FIELD = "data";

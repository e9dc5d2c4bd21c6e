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
  /** Undefined if Redis has no such job any more, or only without its body: the ledger must be asked again. */
  load(): Promise<string | Buffer | undefined>;
}

/** A job as it was fetched. */
export interface FetchedDelivery {
  readonly job: JobHead;
  readonly payload: Payload;
}

/** Replies of a connection come in order, so each loaded body delays all other replies of this connection. */
const LOADS_MAX = 4;

/** Loads bodies from Redis, a few at a time, in the order in which they were asked for. */
export class PayloadLoader {
  readonly #redis: Pick<Redis, "hgetBuffer">;
  /** The load that was begun last, one for each of those that may be under way. */
  readonly #lanes: Promise<unknown>[] = Array.from({ length: LOADS_MAX }, () => Promise.resolve());

  /** `redis`: waits for Redis as long as it takes. */
  constructor(redis: Pick<Redis, "hgetBuffer">) {
    this.#redis = redis;
  }

  /** Undefined if Redis has no such job, or only without its body. */
  load(payloadKey: string): Promise<Buffer | undefined> {
    const loaded = Promise.resolve(this.#lanes.shift()).then(() => loadBody(this.#redis, payloadKey));
    this.#lanes.push(loaded.catch(() => {}));
    return loaded;
  }
}

/** Reads the data of a fetched job; undefined if this version can't read them. `payloadKey`: of the job. */
export function readFetched(
  data: unknown,
  payloadKey: string,
  loader: PayloadLoader,
): FetchedDelivery | undefined {
  const left = readLeft(data);
  const job = parseDeliveryJob(left === undefined ? data : left.job);
  if (job === undefined) {
    return undefined;
  }
  return {
    job,
    payload:
      left === undefined
        ? { bytesToLoad: 0, load: () => Promise.resolve(job.body || undefined) }
        : { bytesToLoad: left.bodyBytes, load: () => loader.load(payloadKey) },
  };
}

/** The data that bullmq/leave-payload.lua makes; undefined for a whole job. */
function readLeft(data: unknown): { readonly bodyBytes: number; readonly job: unknown } | undefined {
  const isLeft = typeof data === "object" && data !== null && "bodyBytes" in data && "job" in data;
  return isLeft && typeof data.bodyBytes === "number"
    ? { bodyBytes: data.bodyBytes, job: data.job }
    : undefined;
}

async function loadBody(redis: Pick<Redis, "hgetBuffer">, payloadKey: string): Promise<Buffer | undefined> {
  const data = await redis.hgetBuffer(payloadKey, DATA_FIELD);
  const job = data === null ? undefined : parseDeliveryJob(JSON.parse(data.toString()));
  // Callers send no empty bodies. An erasure leaves one.
  return job === undefined || job.body === "" ? undefined : Buffer.from(job.body);
}

/** The field of BullMQ's hash that has a job's data. */
const DATA_FIELD = "data";

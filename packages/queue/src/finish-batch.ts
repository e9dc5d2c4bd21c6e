/**
 * Finishes the jobs of one turn of the event loop, and fetches the next ones, in one script. It is BullMQ's own script,
 * run for each job in turn: what it does, and what it is told, stays BullMQ's business.
 *
 * 1. BullMQ makes the arguments, once. Those of other jobs differ by the job, its lock's token and whether a next one is
 *    wanted, since all that it finishes here are removed and have no result.
 * 2. A job that can't be finished gets an error of its own and holds up no other.
 * 3. A script that Redis breaks off rejects all its jobs, like any call whose fate is unknown: they stall and run again.
 */
import { createHash } from "node:crypto";
import { TurnBatch } from "@adrelay/turn-batch";
import { type BackendFactory, createRedisBackend, type RedisQueueBackend, raw2NextJobData } from "bullmq";
import type { Redis } from "ioredis";
import { loadShippedScript, luaText } from "./shipped-script.ts";

interface Finish {
  readonly jobId: string;
  readonly token: string;
  readonly fetchNext: boolean;
}

type Completing = Parameters<RedisQueueBackend["moveToCompleted"]>;
type FinishAll = (finishes: readonly Finish[]) => Promise<readonly unknown[]>;

const PER_JOB = 3;
const KEYS_EACH = 14;
/** Where BullMQ's script has the job's key among its keys, and what else is the job's own among its arguments. */
const JOB_KEY_AT = 12;
const ARGS_AT = { jobId: 1, timestamp: 2, fetchNext: 6, options: 8 } as const;

/**
 * BullMQ's backend on Redis, but for the way jobs are completed: without a result, and for good. `redis` is the
 * connection that the worker was given.
 */
export function batchingBackend(redis: Redis): BackendFactory<RedisQueueBackend> {
  const script = loadShippedScript("moveToFinished", KEYS_EACH);
  return (name, options, connections) => {
    const backend = createRedisBackend(name, options, connections);
    let batch: TurnBatch<Finish, unknown> | undefined;
    // Everything else that the script is told is the same for all jobs, so it stands in its text.
    backend.moveToCompleted = async (...completing: Completing) => {
      const [{ id: jobId = "" }, , , token, fetchNext] = completing;
      const finishedOn = Date.now();
      batch ??= new TurnBatch(finisher(redis, backend, sourceOf(script, argumentsOf(backend, completing))));
      const reply = await batch.ask({ jobId, token, fetchNext: fetchNext && backend.closing === undefined });
      if (typeof reply === "number" && reply < 0) {
        throw backend.finishedErrors({ code: reply, jobId, command: "moveToFinished", state: "active" });
      }
      return { result: raw2NextJobData(Array.isArray(reply) ? reply : []), finishedOn };
    };
    return backend;
  };
}

/** What BullMQ tells its script of a job: those of others differ as the head of this file says. */
function argumentsOf(backend: RedisQueueBackend, [job, , keep]: Completing): readonly unknown[] {
  const NO_RESULT = "null";
  return backend.moveToCompletedArgs(job, NO_RESULT, keep, "", true);
}

/** Runs the script on a connection; it is sent whole once, and again if Redis has forgotten it. */
function finisher(redis: Redis, backend: RedisQueueBackend, { source, keys }: FinishScript): FinishAll {
  const sha = createHash("sha1").update(source).digest("hex");
  const prefix = backend.toKey("");
  return async (finishes) => {
    const jobKeys = finishes.map(({ jobId }) => prefix + jobId);
    const args = finishes.flatMap(({ jobId, token, fetchNext }) => [jobId, token, fetchNext ? 1 : 0]);
    const call = [KEYS_EACH + jobKeys.length, ...keys, ...jobKeys, Date.now(), ...args] as const;
    const reply = await redis.evalsha(sha, ...call).catch((error: unknown) => {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT")) {
        return redis.eval(source, ...call);
      }
      throw error;
    });
    return Array.isArray(reply) ? reply : [];
  };
}

interface FinishScript {
  readonly source: string;
  readonly keys: readonly string[];
}

/** KEYS: BullMQ's own, then the job of each. ARGV: 1 now in ms, then of each its id, token and whether to fetch another. */
function sourceOf(shipped: string, template: readonly unknown[]): FinishScript {
  const keys = template
    .slice(0, KEYS_EACH)
    .map(String)
    .with(JOB_KEY_AT - 1, String(template[0]));
  const own: readonly number[] = [ARGS_AT.jobId, ARGS_AT.timestamp];
  const args = template
    .slice(KEYS_EACH)
    .map((value, at) => luaText(bytesOf(own.includes(at + 1) ? "" : value)));
  const source = `
local FINISH_KEYS, FINISH_ARGV = {unpack(KEYS, 1, ${KEYS_EACH})}, {${args.join(", ")}}
local options = cmsgpack.unpack(FINISH_ARGV[${ARGS_AT.options}])
FINISH_ARGV[${ARGS_AT.timestamp}] = ARGV[1]
local function finish(KEYS, ARGV)
${shipped}
end
local function finishAt(at)
  local from = ${PER_JOB} * at - 1
  FINISH_KEYS[${JOB_KEY_AT}] = KEYS[${KEYS_EACH} + at]
  options['token'] = ARGV[from + 1]
  FINISH_ARGV[${ARGS_AT.jobId}] = ARGV[from]
  FINISH_ARGV[${ARGS_AT.fetchNext}] = ARGV[from + 2]
  FINISH_ARGV[${ARGS_AT.options}] = cmsgpack.pack(options)
  return finish(FINISH_KEYS, FINISH_ARGV)
end
local replies = {}
for at = 1, (#ARGV - 1) / ${PER_JOB} do
  local isOk, reply = pcall(finishAt, at)
  replies[at] = (isOk or type(reply) == 'table') and reply or {err = reply}
end
return replies
`;
  return { source, keys };
}

/** An argument as it goes to Redis. */
function bytesOf(value: unknown): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(String(value ?? ""));
}

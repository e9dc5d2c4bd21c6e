/**
 * Lua by which our scripts complete BullMQ's jobs, so that the ledger and the queue change in one step. It is BullMQ's own
 * script that does it. BullMQ is also asked, once, for the keys and arguments that it would pass.
 * test/bullmq-worker.test.ts compares what is left in Redis with what BullMQ leaves.
 */
import { DELIVERY_JOB_VERSION } from "@adrelay/contract";
import { asFunction, loadShippedScript, luaText } from "./shipped-scripts.ts";

/** What a script needs in order to complete jobs. */
export interface CompleteJobScript {
  /**
   * Lua that defines
   * - `completeJob(keys, prefix, id, token, fetchNext, timestamp)`, which completes a job, and fetches another one if
   *   `fetchNext` is `1`. Returns what BullMQ's script returns; raises what Redis raises. It writes to `keys`.
   * - `fetchedJob(reply)`, which returns the ad response and the text's fingerprint of the job in such a reply. It returns
   *   no ad response if there is no job, or if its data aren't written as this version writes them.
   */
  readonly lua: string;
  readonly keys: readonly string[];
  readonly jobPrefix: string;
}

/** A job that has run, and the lock under which it ran. */
export interface JobToComplete {
  readonly id: string;
  readonly token: string;
  readonly fetchNext: boolean;
}

/** `Prefetched`: the entry of the job that was fetched. */
export interface CompletedJob<Prefetched> {
  /** What `completeJob` returned, or the error that it raised. */
  readonly reply: unknown;
  /** Undefined if no job was fetched, or if the ledger must be asked about it. */
  readonly prefetched: Prefetched | undefined;
}

/** How many keys BullMQ's script for completing a job takes. */
export const COMPLETE_KEY_COUNT = 14;
/** Where BullMQ's script has the job's key among its keys, and what differs by job among its arguments. */
export const JOB_KEY_AT = 12;
export const ARGS_AT = { jobId: 1, timestamp: 2, fetchNext: 6, options: 8 } as const;

/** Throws if this BullMQ completes jobs by another script, or by one that takes another number of keys. */
export function loadCompleteScript(): string {
  return loadShippedScript("moveToFinished", COMPLETE_KEY_COUNT);
}

/**
 * Other jobs' arguments differ by the job, the token of its lock and whether a next job is wanted, because all jobs that
 * are completed here are removed and have no result.
 *
 * @param command keys and arguments as BullMQ makes them for one of the jobs
 */
export function makeCompleteJob(
  completeScript: string,
  command: readonly unknown[],
  jobPrefix: string,
): CompleteJobScript {
  const differing: readonly number[] = [ARGS_AT.jobId, ARGS_AT.timestamp];
  // All other arguments are the same for all jobs, so they are part of the script's text.
  const args = command
    .slice(COMPLETE_KEY_COUNT)
    .map((value, at) => luaText(bytesOf(differing.includes(at + 1) ? "" : value)));
  const lua = `local moveToFinished = ${asFunction(completeScript)}
local completeArgs = {${args.join(", ")}}
local completeOptions = cmsgpack.unpack(completeArgs[${ARGS_AT.options}])
completeArgs[${ARGS_AT.options}] = completeOptions
local function completeJob(keys, prefix, id, token, fetchNext, timestamp)
  keys[${JOB_KEY_AT}] = prefix .. id
  completeOptions['token'] = token
  completeArgs[${ARGS_AT.jobId}], completeArgs[${ARGS_AT.timestamp}] = id, timestamp
  completeArgs[${ARGS_AT.fetchNext}] = fetchNext
  return moveToFinished(keys, completeArgs)
end
${FETCHED_JOB}`;
  const keys = command
    .slice(0, COMPLETE_KEY_COUNT)
    .map(String)
    .with(JOB_KEY_AT - 1, jobPrefix);
  return { lua, keys, jobPrefix };
}

/** A reply's first member is the job's fields and values. A job's data begin with the version and the ad response. */
const FETCHED_JOB = `local function fetchedJob(reply)
  local fields = type(reply) == 'table' and reply[1]
  if type(fields) ~= 'table' then
    return
  end
  local id, name
  for at = 1, #fields, 2 do
    if fields[at] == 'data' then
      id = string.match(fields[at + 1], '^{"v":${DELIVERY_JOB_VERSION},"adResponseId":"([%x-]+)"')
    elseif fields[at] == 'name' then
      name = fields[at + 1]
    end
  end
  return id, name
end
`;

/** An argument as it goes to Redis. */
function bytesOf(value: unknown): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(String(value ?? ""));
}

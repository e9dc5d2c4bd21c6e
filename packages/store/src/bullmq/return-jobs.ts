/**
 * Lua by which our script returns the running jobs of a worker that is gone to the waiting jobs. It removes their locks
 * and has BullMQ's own script look for stalled jobs, which then finds these. So what follows is the same as after a
 * lock that ran out, only sooner.
 */
import type { Queue } from "bullmq";
import { STALLED_CHECK_MS } from "./locks.ts";
import { asFunction, loadShippedScript } from "./shipped-scripts.ts";

/** What a script needs in order to return the jobs of workers. */
export interface ReturnJobsScript {
  /**
   * Lua that defines `returnJobs(keys, prefix, workerId)`. Returns how many jobs the worker ran; raises what Redis
   * raises.
   */
  readonly lua: string;
  /** `keys`: all in the queue's partition. */
  readonly keys: readonly string[];
  /** `prefix`: with a job's id it makes the key of the job's payload. */
  readonly jobPrefix: string;
}

/** An acknowledgment ends by its age, however often its worker was killed. */
export const STALLED_COUNT_UNBOUNDED = 1_000_000_000;

/** The keys of BullMQ's script, in its order. */
const KEY_NAMES = [
  "stalled",
  "wait",
  "active",
  "stalled-check",
  "meta",
  "paused",
  "marker",
  "events",
  "repeat",
];
/** Where three of them are. */
const KEY_AT = { stalled: 1, active: 3, stalledCheck: 4 } as const;
export const RETURN_JOBS_KEY_COUNT = KEY_NAMES.length;

/** Throws if BullMQ ships no such script, or one that takes another number of keys. */
export function makeReturnJobs(queue: Queue): ReturnJobsScript {
  const moveStalled = loadShippedScript("moveStalledJobsToWait", RETURN_JOBS_KEY_COUNT);
  return {
    lua: returnJobsLua(moveStalled),
    keys: KEY_NAMES.map((name) => queue.toKey(name)),
    jobPrefix: queue.toKey(""),
  };
}

/**
 * The token of a job's lock begins with the id of the worker that runs it. A job is only stalled if it ran already at the
 * check before, which the set of `stalled` jobs says, and if no check was made a short time ago.
 */
function returnJobsLua(moveStalledJobsToWait: string): string {
  return `local moveStalledJobsToWait = ${asFunction(moveStalledJobsToWait)}
local function returnJobs(keys, prefix, workerId)
  local returned = {}
  for _, id in ipairs(redis.call('LRANGE', keys[${KEY_AT.active}], 0, -1)) do
    local lock = prefix .. id .. ':lock'
    local token = redis.call('GET', lock)
    if token and string.sub(token, 1, #workerId + 1) == workerId .. ':' then
      redis.call('DEL', lock)
      returned[#returned + 1] = id
    end
  end
  if #returned > 0 then
    redis.call('DEL', keys[${KEY_AT.stalledCheck}])
    for _, id in ipairs(returned) do
      redis.call('SADD', keys[${KEY_AT.stalled}], id)
    end
    moveStalledJobsToWait(keys, {${STALLED_COUNT_UNBOUNDED}, prefix, 1, ${STALLED_CHECK_MS}})
  end
  return #returned
end
`;
}

import type { Redis } from "ioredis";
import type { FinishedJob, JobToFinish, QueueCompletion } from "../src/index.ts";

/** Finishes jobs by a script that does nothing else; what it saw is the ad response of the job that it fetched. */
export function finishAlone(redis: Redis) {
  return ({ lua, keys, jobPrefix }: QueueCompletion) => {
    const script = `${lua}
      local isOk, finished = pcall(finishJob, {unpack(KEYS)}, unpack(ARGV))
      return {fetchedJob(finished) or '', (isOk or type(finished) == 'table') and finished or {err = finished}}`;
    return async ({ id, token, fetchNext }: JobToFinish): Promise<FinishedJob<string>> => {
      const args = [jobPrefix, id, token, fetchNext ? 1 : 0, Date.now()];
      const reply: unknown = await redis.eval(script, keys.length, ...keys, ...args);
      const [seen, finished] = Array.isArray(reply) ? reply : [];
      return { finished, look: seen === "" ? undefined : String(seen) };
    };
  };
}

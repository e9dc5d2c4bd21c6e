/**
 * How long a job stays locked. Redis ends a lock at a time by its own clock, so a lock that was taken before this clock was
 * set back would last longer by as much as the step was.
 */
import type { Redis } from "ioredis";
import { z } from "zod";

/** How often each worker searches for stalled jobs. */
export const STALLED_CHECK_MS = 5000;
/** A job's lock outlives its attempt by this. */
export const LOCK_MARGIN_MS = 10_000;
/** The longest attempt that a worker may be set to. A lock that ends later than after such an attempt is too long. */
export const ATTEMPT_MAX_MS = 120_000;

/**
 * Shortens locks that end later than any worker takes them for. Otherwise the jobs of a worker that died would wait for as
 * long as the step, and so would the next search for stalled jobs. Resolves with how many were shortened.
 *
 * @param keyOf makes a key of the queue
 */
export async function shortenLocks(redis: Redis, keyOf: (name: string) => string): Promise<number> {
  const keys = [keyOf("active"), keyOf("stalled-check"), keyOf("")];
  const args = [ATTEMPT_MAX_MS + LOCK_MARGIN_MS, STALLED_CHECK_MS];
  return z.number().parse(await redis.eval(SHORTEN_SCRIPT, keys.length, ...keys, ...args));
}

/**
 * KEYS: 1 running jobs: as many as there are attempts, 2 BullMQ's mark that it has just searched for stalled jobs,
 *       3 prefix of jobs' keys
 * ARGV: 1 longest lock, 2 pause between two searches, in ms
 */
const SHORTEN_SCRIPT = `
  local shortened = 0
  local function shorten(key, mostMs)
    if redis.call('PTTL', key) > tonumber(mostMs) then
      shortened = shortened + redis.call('PEXPIRE', key, mostMs)
    end
  end
  shorten(KEYS[2], ARGV[2])
  for _, id in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    shorten(KEYS[3] .. id .. ':lock', ARGV[1])
  end
  return shortened
`;

/** Steps of Redis' clock, as they look to the store. */
import type { Redis } from "ioredis";

const ENTRY_TIMES = ["r", "d", "a", "q", "w", "e"];
const REPLAY_TIMES = ["created", "last", "updated", "ended"];

/**
 * Leaves a partition as a step of Redis' clock leaves it: all that was written by this clock is `stepMs` further ahead of it
 * than before. A negative step sets the clock forward. The delays of BullMQ's jobs stay: they go by the clocks of workers.
 */
export async function setRedisClockBack(redis: Redis, partition: string, stepMs: number): Promise<void> {
  const prefix = `{adrelay:${partition}}:`;
  const keys = await redis.keys(`${prefix}*`);
  await Promise.all(
    keys.map(async (key) => {
      const ttlMs = await redis.pttl(key);
      await shiftTimes(redis, { key, name: key.slice(prefix.length) }, stepMs);
      if (ttlMs > 0) {
        await redis.pexpire(key, ttlMs + stepMs);
      }
    }),
  );
}

interface Named {
  readonly key: string;
  readonly name: string;
}

async function shiftTimes(redis: Redis, { key, name }: Named, stepMs: number): Promise<void> {
  if (/^(awaiting|queued|dead|payload-work|replays$)/.test(name) && (await redis.type(key)) === "zset") {
    const members = await redis.zrange(key, "0", "-1");
    await Promise.all(members.map((member) => redis.zincrby(key, stepMs, member)));
  } else if (name.startsWith("e:")) {
    await shiftFields(redis, key, { names: ENTRY_TIMES, by: stepMs });
    const log = await redis.hget(key, "l");
    if (log !== null) {
      await redis.hset(
        key,
        "l",
        log.replace(/^\d+/gm, (time) => String(Number(time) + stepMs)),
      );
    }
  } else if (name.startsWith("awaiting:turn:")) {
    const names = (await redis.hkeys(key)).filter((field) => /^(l\d+|w)$/.test(field));
    await shiftFields(redis, key, { names, by: stepMs });
  } else if (name.startsWith("replay:")) {
    await shiftFields(redis, key, { names: REPLAY_TIMES, by: stepMs });
    await shiftFields(redis, key, { names: ["refilled"], by: stepMs * 1000 });
  } else if (name === "processes") {
    const fields = Object.entries(await redis.hgetall(key));
    const shifted = fields.map(([id, text]) => [
      id,
      text.replace(/^(\d+) (\d+)/, (_all, beat: string, seen: string) => `${beat} ${Number(seen) + stepMs}`),
    ]);
    await redis.hset(key, Object.fromEntries(shifted));
  } else if (name === "data-loss" || name.endsWith("-covered")) {
    const text = (await redis.get(key)) ?? "";
    await redis.set(
      key,
      text.replace(/^\d+/, (time) => String(Number(time) + stepMs)),
      "KEEPTTL",
    );
  }
}

async function shiftFields(
  redis: Redis,
  key: string,
  { names, by }: { readonly names: readonly string[]; readonly by: number },
): Promise<void> {
  for (const name of names) {
    if ((await redis.hexists(key, name)) === 1) {
      await redis.hincrby(key, name, by);
    }
  }
}

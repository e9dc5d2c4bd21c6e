import type { Redis } from "ioredis";
import { z } from "zod";

export interface SlowCommands {
  readonly slowest: readonly { readonly durationMs: number; readonly command: string }[];
  /** How many took more than a millisecond. */
  readonly count: number;
}

const LENGTH = 10_000;
const SHOWN = 5;
const TEXT_CHARS = 100;

/** Makes Redis note commands that take more than a millisecond. */
export async function watchSlowCommands(redis: Redis): Promise<void> {
  await redis.config("SET", "slowlog-log-slower-than", "1000");
  await redis.config("SET", "slowlog-max-len", String(LENGTH));
  await redis.slowlog("RESET");
}

/** The slowest since the last look. */
export async function slowestCommands(redis: Redis): Promise<SlowCommands> {
  const entries = z.array(entrySchema).parse(await redis.slowlog("GET", LENGTH));
  await redis.slowlog("RESET");
  const slowest = entries.toSorted((a, b) => b.durationMs - a.durationMs).slice(0, SHOWN);
  return { slowest, count: entries.length };
}

/** Of a script, its first key and its first arguments tell which one it is. */
const entrySchema = z
  .tuple([z.number(), z.number(), z.number(), z.array(z.string())], z.unknown())
  .transform(([_id, _atSeconds, durationUs, [name = "", ...words]]) => {
    const [, keys = "0", ...rest] = words;
    const isScript = name === "eval" || name === "evalsha";
    const shown = isScript ? [rest[0], "…", ...rest.slice(Number(keys), Number(keys) + 3)] : words;
    return { durationMs: durationUs / 1000, command: [name, ...shown].join(" ").slice(0, TEXT_CHARS) };
  });

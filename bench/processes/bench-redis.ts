import { startTestRedis } from "@adrelay/dev-servers";
import { Redis } from "ioredis";

export type Appendfsync = "everysec" | "always";

/** A Redis of one side's own. */
export interface BenchRedis extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** For what a part asks and prepares itself; not for load. */
  readonly client: Redis;
  /** A number out of INFO. */
  info(section: string, field: string): Promise<number>;
}

/**
 * Its append-only file isn't rewritten: within a round of seconds Redis would do so at 64 MB, which one side reaches and
 * the other one may just not.
 */
export async function startBenchRedis(appendfsync: Appendfsync = "everysec"): Promise<BenchRedis> {
  const redis = await startTestRedis(["--appendfsync", appendfsync, "--auto-aof-rewrite-percentage", "0"]);
  const client = new Redis(redis.url);
  // A command that Redis doesn't answer tells of it; after Ctrl-C none is under way.
  client.on("error", () => {});
  const info = async (section: string, field: string) => {
    const text = await client.info(section);
    return Number(new RegExp(`^${field}:(\\S+)`, "m").exec(text)?.[1]);
  };
  return {
    url: redis.url,
    pid: await info("server", "process_id"),
    client,
    info,
    [Symbol.asyncDispose]: async () => {
      client.disconnect();
      await redis.dispose();
    },
  };
}

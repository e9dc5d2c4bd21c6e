import type { BenchRedis } from "../../processes/bench-redis.ts";

/** What Redis was asked meanwhile. */
export interface RedisTraffic {
  /** Commands that came over a connection: round trips, unless pipelined. */
  readonly asked: number;
  /** Commands that scripts ran. */
  readonly inScripts: number;
  /** Commands by name, those of scripts as `script: name`. */
  readonly names: ReadonlyMap<string, number>;
}

export interface RedisBytes {
  readonly in: number;
  readonly out: number;
}

/** Watches each command by MONITOR while `run` runs. */
export async function watchCommands(redis: BenchRedis, run: () => Promise<unknown>): Promise<RedisTraffic> {
  const names = new Map<string, number>();
  const monitor = await redis.client.duplicate().monitor();
  monitor.on("monitor", (_time: string, [command = ""]: string[], source: string) => {
    const name = source === "lua" ? `script: ${command.toLowerCase()}` : command.toLowerCase();
    names.set(name, (names.get(name) ?? 0) + 1);
  });
  await run();
  // Its answer comes after everything before it has been told.
  await redis.client.ping();
  monitor.disconnect();
  const sumOf = (isScripts: boolean) =>
    [...names].reduce(
      (sum, [name, count]) => sum + (name.startsWith("script: ") === isScripts ? count : 0),
      0,
    );
  return { asked: sumOf(false), inScripts: sumOf(true), names };
}

/** Counts what goes over Redis' connections while `run` runs; the questions about it are a few hundred bytes. */
export async function countBytes(redis: BenchRedis, run: () => Promise<unknown>): Promise<RedisBytes> {
  const look = async () => ({
    in: await redis.info("stats", "total_net_input_bytes"),
    out: await redis.info("stats", "total_net_output_bytes"),
  });
  const before = await look();
  await run();
  const after = await look();
  return { in: after.in - before.in, out: after.out - before.out };
}

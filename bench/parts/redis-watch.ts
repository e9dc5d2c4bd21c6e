import { connect } from "node:net";
import { createInterface } from "node:readline";
import type { BenchRedis } from "../sides.ts";

/** The commands that Redis ran. */
export interface RedisTraffic {
  /** Commands that came over a connection: each is a round trip unless it was pipelined. */
  readonly sent: number;
  /** Commands that scripts ran. */
  readonly inScripts: number;
  /** The number of commands by name. Commands of scripts have names such as `script: get`. */
  readonly names: ReadonlyMap<string, number>;
}

export interface RedisBytes {
  readonly in: number;
  readonly out: number;
}

const SCRIPT_PREFIX = "script: ";
/** A line of MONITOR: the time of a command, its origin, its name. */
const MONITOR_LINE = /^\+\d+\.\d+ \[\d+ ([^\]]*)\] "([^"]*)"(.*)$/;
const END_MARK = "end of the watch";

/**
 * Watches every command with MONITOR while `run` runs. It uses a plain socket: if lines arrive together with MONITOR's
 * own answer, the client library mistakes them for answers to other commands.
 */
export async function watchCommands(redis: BenchRedis, run: () => Promise<unknown>): Promise<RedisTraffic> {
  const names = new Map<string, number>();
  const socket = connect(Number(new URL(redis.url).port), "127.0.0.1");
  const lines = createInterface({ input: socket });
  const begun = Promise.withResolvers<void>();
  const ended = Promise.withResolvers<void>();
  socket.on("error", ended.reject);
  lines.on("line", (line) => {
    const [, source, command = "", rest = ""] = MONITOR_LINE.exec(line) ?? [];
    if (source === undefined) {
      begun.resolve();
    } else if (rest.includes(END_MARK)) {
      ended.resolve();
    } else {
      const name = `${source === "lua" ? SCRIPT_PREFIX : ""}${command.toLowerCase()}`;
      names.set(name, (names.get(name) ?? 0) + 1);
    }
  });
  socket.write("MONITOR\r\n");
  await begun.promise;
  await run();
  await redis.client.echo(END_MARK);
  await ended.promise;
  socket.destroy();
  const sumOf = (isScripts: boolean) =>
    [...names].reduce((sum, [name, n]) => sum + (name.startsWith(SCRIPT_PREFIX) === isScripts ? n : 0), 0);
  return { sent: sumOf(false), inScripts: sumOf(true), names };
}

/** Counts the bytes on all connections of Redis while `run` runs. The two measurements themselves add a few hundred bytes. */
export async function countBytes(redis: BenchRedis, run: () => Promise<unknown>): Promise<RedisBytes> {
  const measure = async () => ({
    in: await redis.info("stats", "total_net_input_bytes"),
    out: await redis.info("stats", "total_net_output_bytes"),
  });
  const before = await measure();
  await run();
  const after = await measure();
  return { in: after.in - before.in, out: after.out - before.out };
}

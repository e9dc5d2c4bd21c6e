import { readFileSync } from "node:fs";
import { resolve } from "node:path";
import { describeServer, findRedisServer, type RunningRedis, startRedis } from "@adrelay/local-redis";
import { type Part, PartError } from "./part.ts";
import { commandLineOf, isAlive } from "./run-file.ts";

export interface RedisPartOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly dataDir: string;
  readonly cacheDir: string;
  readonly runFile: string;
  readonly say: (line: string) => void;
  readonly onStarted: () => void;
}

export interface RedisPart extends Part {
  readonly url: string;
}

const RESTART_DELAY_MS = 300;
const LEFTOVER_TIMEOUT_MS = 10_000;

/** Starts a Redis of our own, its data kept; if it dies, it is started again on its port. */
export async function startOwnRedis(options: RedisPartOptions): Promise<RedisPart> {
  const { env, cacheDir, dataDir: dir, say } = options;
  await endLeftover(options);
  const server = await findRedisServer({ cacheDir, env, log: say });
  if (server.kind === "none") {
    const tried = server.tried.map(({ what, why }) => `  ${what}: ${why}`).join("\n");
    throw new PartError(
      `no Redis was found, and none could be fetched:\n${tried}\nInstall redis-server or valkey-server, or set REDIS_URL.`,
    );
  }
  let running = await startRedis({ server, dir });
  let isStopping = false;
  const { port, url } = running;
  const watch = (watched: RunningRedis) => {
    void watched.exited.then(() => {
      if (!isStopping) {
        say("redis ended; starting it again");
        setTimeout(() => void restart(), RESTART_DELAY_MS);
      }
    });
  };
  const restart = async (): Promise<void> => {
    if (isStopping) {
      return;
    }
    try {
      running = await startRedis({ server, dir, port });
      watch(running);
      options.onStarted();
      say(`redis runs again (pid ${running.pid})`);
    } catch (error) {
      say(error instanceof Error ? error.message : String(error));
      setTimeout(() => void restart(), RESTART_DELAY_MS * 10);
    }
  };
  watch(running);
  say(`redis runs at ${url}: ${describeServer(server)}, data in ${dir}`);
  return {
    name: "redis",
    url,
    pid: () => running.pid,
    stop: async () => {
      isStopping = true;
      await running.stop();
    },
  };
}

/** Ends a Redis on our data that a killed start left behind: two servers must not write one file. */
async function endLeftover({ runFile, dataDir, say }: RedisPartOptions): Promise<void> {
  const pid = leftoverPid(runFile);
  if (pid === undefined || !isAlive(pid) || commandLineOf(pid)?.includes(resolve(dataDir)) === false) {
    return;
  }
  say(`ending a redis that an earlier start left behind (pid ${pid})`);
  process.kill(pid, "SIGTERM");
  const deadlineMs = performance.now() + LEFTOVER_TIMEOUT_MS;
  while (isAlive(pid)) {
    if (performance.now() > deadlineMs) {
      throw new PartError(`the redis with pid ${pid} uses our data and does not end`);
    }
    await new Promise((done) => setTimeout(done, 50));
  }
}

function leftoverPid(runFile: string): number | undefined {
  try {
    const run: unknown = JSON.parse(readFileSync(runFile, "utf8"));
    const pids: unknown = typeof run === "object" && run !== null && "pids" in run ? run.pids : undefined;
    const pid: unknown =
      typeof pids === "object" && pids !== null && "redis" in pids ? pids.redis : undefined;
    return typeof pid === "number" && pid > 0 ? pid : undefined;
  } catch {
    return undefined;
  }
}

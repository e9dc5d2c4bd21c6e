import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { describeServer, findRedisServer, type RunningRedis, startRedis } from "@adrelay/dev-servers";
import { type Part, PartError } from "./part.ts";

export interface RedisPartOptions {
  readonly env: NodeJS.ProcessEnv;
  readonly dataDir: string;
  readonly cacheDir: string;
  readonly say: (line: string) => void;
  readonly onStarted: () => void;
}

export interface RedisPart extends Part {
  readonly url: string;
}

/** Beside the data: which kind of server wrote them. */
const WAY_FILE = "server-kind";
const RESTART_DELAY_MS = 300;

/** Starts a Redis of our own, its data kept; if it dies, it is started again on its port. */
export async function startOwnRedis(options: RedisPartOptions): Promise<RedisPart> {
  const { env, cacheDir, dataDir: dir, say } = options;
  const wayFile = join(dir, WAY_FILE);
  const server = await findRedisServer({ cacheDir, env: { ...rememberedWay(wayFile), ...env }, log: say });
  if (server.kind === "none") {
    const tried = server.tried.map(({ what, why }) => `  ${what}: ${why}`).join("\n");
    throw new PartError(
      `no Redis was found, and none could be fetched:\n${tried}\nInstall redis-server or valkey-server, or set REDIS_URL.`,
    );
  }
  let running = await startRedis({ server, dir });
  writeFileSync(
    wayFile,
    server.kind === "docker" ? "docker" : server.origin === "embedded" ? "embedded" : "path",
  );
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

/**
 * The data may be of a newer format than another server reads: the kind that wrote them goes on with them,
 * unless ADRELAY_REDIS_SERVER says otherwise.
 */
function rememberedWay(file: string): NodeJS.ProcessEnv {
  const way = existsSync(file) ? readFileSync(file, "utf8").trim() : "";
  return way === "embedded" || way === "docker" ? { ADRELAY_REDIS_SERVER: way } : {};
}

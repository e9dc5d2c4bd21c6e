/** What is checked before anything is started: ports, a given Redis. */
import { createServer } from "node:net";
import {
  COMMON_SETTINGS,
  connectRedis,
  createLogger,
  explainAway,
  loadConfig,
  redisTargetOf,
  waitForRedis,
} from "@adrelay/service-kit";
import { z } from "zod";

/** A port that a part of the stack will listen on. */
export interface WantedPort {
  readonly part: string;
  readonly host: string;
  readonly port: number;
  /** The setting that chooses another port. */
  readonly setting: string;
}

const REDIS_TIMEOUT_MS = 3000;

/** One line if a Redis was given and can't be reached. It is reached as the apps reach it. */
export async function absentRedis(env: NodeJS.ProcessEnv, timeoutMs = REDIS_TIMEOUT_MS): Promise<string[]> {
  const result = loadConfig(z.object(COMMON_SETTINGS), env);
  if (!env["REDIS_URL"] || result.kind === "faulty") {
    return [];
  }
  const redis = connectRedis(redisTargetOf(result.config), "request", createLogger("start", "silent"));
  try {
    const waited = await waitForRedis(redis, timeoutMs);
    if (waited.kind === "ready") {
      return [];
    }
    const why = (await explainAway(redis, waited.error)) ?? "no Redis answers there";
    return [`REDIS_URL: ${why}; without this setting npm start runs its own Redis`];
  } finally {
    redis.disconnect();
  }
}

/** A line for each port that is not available, with its part and its setting. */
export async function takenPorts(wanted: readonly WantedPort[]): Promise<string[]> {
  const lines: string[] = [];
  for (const { part, host, port, setting } of wanted) {
    const why = await whyNotFree(host, port);
    if (why !== undefined) {
      lines.push(`port ${port} for the ${part} ${why}; choose another one with ${setting}`);
    }
  }
  return lines;
}

/** A line for each pair of parts that want the same port. */
export function equalPorts(wanted: readonly WantedPort[]): string[] {
  return wanted.flatMap((one, at) =>
    wanted
      .slice(at + 1)
      .filter(({ port }) => port === one.port)
      .map(
        (other) =>
          `the ${one.part} and the ${other.part} have the same port ${one.port}; choose another one with ${other.setting}`,
      ),
  );
}

function whyNotFree(host: string, port: number): Promise<string | undefined> {
  return new Promise((resolve) => {
    const probe = createServer();
    probe.once("error", (error: NodeJS.ErrnoException) => {
      resolve(error.code === "EADDRINUSE" ? "is in use" : `can't be used (${error.code ?? error.message})`);
    });
    probe.listen(port, host, () => probe.close(() => resolve(undefined)));
  });
}

import { Redis } from "ioredis";
import { AD_SERVER_SETTINGS, loadAdServerConfig } from "../../apps/ad-server/src/config.ts";
import { GATEWAY_SETTINGS, loadGatewayConfig } from "../../apps/gateway/src/config.ts";
import { loadWorkerConfig, WORKER_SETTINGS } from "../../apps/worker/src/config.ts";

const KNOWN = new Set(
  [AD_SERVER_SETTINGS, GATEWAY_SETTINGS, WORKER_SETTINGS].flatMap((shape) => Object.keys(shape)),
);
const REDIS_TIMEOUT_MS = 3000;

/** Faults of the settings of every app, by name, before anything is started. */
export function settingFaults(env: NodeJS.ProcessEnv): string[] {
  const results = [loadGatewayConfig(env), loadWorkerConfig(env), loadAdServerConfig(env)];
  const faults = results.flatMap((result) => (result.kind === "faulty" ? result.faults : []));
  return [...new Set(faults.map(({ path, message }) => `${path}: ${message}`))];
}

/** Names that no app knows, of a file that is there for settings alone. */
export function unknownSettings(names: readonly string[]): string[] {
  return names.filter((name) => !KNOWN.has(name) && !name.startsWith("ADRELAY_"));
}

/** One line if a Redis was named and doesn't answer. */
export async function absentRedis(url: string | undefined): Promise<string[]> {
  if (!url) {
    return [];
  }
  const redis = new Redis(url, {
    lazyConnect: true,
    connectTimeout: REDIS_TIMEOUT_MS,
    retryStrategy: () => null,
  });
  redis.on("error", () => {});
  try {
    await redis.connect();
    return [];
  } catch {
    return ["REDIS_URL: no Redis answers there; leave it out, and npm start brings its own"];
  } finally {
    redis.disconnect();
  }
}

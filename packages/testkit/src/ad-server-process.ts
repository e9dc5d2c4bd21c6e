import { type AppProcess, startApp } from "./app-process.ts";
import { freeLanePort } from "./lane-port.ts";
import { TEST_PROVIDER_KEY } from "./relay-stack.ts";
import type { TestRedis } from "./test-redis.ts";

/** The real ad server as a process that can be killed and started again on its port. */
export interface AdServerProcess {
  readonly url: string;
  start(env?: Record<string, string>): Promise<void>;
  /** kill -9. */
  crash(): Promise<void>;
  stop(): Promise<void>;
  /** How often acknowledgments for one ad response were posted, and what its own books say of it. */
  acknowledgmentOf(adResponseId: string): Promise<{ acknowledged: boolean; posts: number }>;
}

export async function startAdServer(redis: TestRedis, keys = TEST_PROVIDER_KEY): Promise<AdServerProcess> {
  const port = await freeLanePort();
  const url = `http://127.0.0.1:${port}`;
  let app: AppProcess | undefined;
  const start = async (env: Record<string, string> = {}) => {
    app = await startApp("ad-server", {
      AD_SERVER_PORT: String(port),
      AD_SERVER_API_KEYS: keys,
      REDIS_URL: redis.url,
      SHUTDOWN_TIMEOUT_MS: "5000",
      ...env,
    });
  };
  await start();
  return {
    url,
    start,
    crash: async () => {
      app?.kill("SIGKILL");
      await app?.exited;
    },
    stop: async () => {
      await app?.stop();
    },
    acknowledgmentOf: async (id) => {
      const key = keys.split(",")[0] ?? "";
      const response = await fetch(`${url}/acknowledgments/${id}`, { headers: { "X-Service-API-Key": key } });
      const body: unknown = await response.json();
      const { acknowledged, posts } = Object(body);
      return { acknowledged: acknowledged === true, posts: Number(posts) };
    },
  };
}

/** Gateway, worker and ad server as processes that a test can kill and start again. */
import { strict as assert } from "node:assert";
import { freeLanePort, type TestRedis } from "@adrelay/dev-servers";
import { eventually } from "./inspection.ts";
import { type AppProcess, startApp } from "./processes.ts";

export const TEST_API_KEY = "key-of-the-caller";
export const TEST_ADMIN_TOKEN = "token-of-an-operator";
export const TEST_PROVIDER_KEY = "key-at-the-provider";

/** A gateway and a worker. Each keeps its ports through a crash and a restart. */
export interface RelayStack {
  readonly gatewayUrl: string;
  readonly gatewayOpsUrl: string;
  readonly workerOpsUrl: string;
  readonly apps: Map<"gateway" | "worker", AppProcess>;
  /** Starts one, or restarts it after its end, with further settings if given. */
  start(app: "gateway" | "worker", env?: Record<string, string>): Promise<AppProcess>;
  /** Ends the process with SIGKILL. */
  crash(app: "gateway" | "worker"): Promise<void>;
  stop(): Promise<void>;
}

export interface StackOptions {
  readonly redis: Pick<TestRedis, "url">;
  readonly providerUrl: string;
  readonly env?: Readonly<Record<string, string>>;
}

/** Starts both. The settings suit quick tests; `env` overrides them. */
export async function startRelayStack({ redis, providerUrl, env = {} }: StackOptions): Promise<RelayStack> {
  const [gatewayPort, gatewayOpsPort, workerOpsPort] = [
    await freeLanePort(),
    await freeLanePort(),
    await freeLanePort(),
  ];
  const base = {
    REDIS_URL: redis.url,
    PROVIDER_URL: providerUrl,
    PROVIDER_API_KEY: TEST_PROVIDER_KEY,
    API_KEYS: TEST_API_KEY,
    ADMIN_TOKEN: TEST_ADMIN_TOKEN,
    GATEWAY_PORT: String(gatewayPort),
    GATEWAY_OPS_PORT: String(gatewayOpsPort),
    WORKER_OPS_PORT: String(workerOpsPort),
    RETRY_SCHEDULE: "100ms,200ms",
    BREAKER_PROBE_INTERVAL_MS: "200",
    RECOVERY_RATE_PER_SECOND: "5000",
    SWEEP_INTERVAL_MS: "100",
    DELIVERY_TIMEOUT_MS: "1000",
    SHUTDOWN_TIMEOUT_MS: "5000",
    // All calls of most tests come from one publisher. How many a second they are depends on the machine.
    QUOTA_REQUESTS_PER_SECOND: "off",
    QUOTA_BURST: "off",
    ...env,
  };
  const apps = new Map<"gateway" | "worker", AppProcess>();
  const start = async (app: "gateway" | "worker", more: Record<string, string> = {}) => {
    const started = await startApp(app, { ...base, ...more });
    apps.set(app, started);
    return started;
  };
  await Promise.all([start("gateway"), start("worker")]);
  return {
    gatewayUrl: `http://127.0.0.1:${gatewayPort}`,
    gatewayOpsUrl: `http://127.0.0.1:${gatewayOpsPort}`,
    workerOpsUrl: `http://127.0.0.1:${workerOpsPort}`,
    apps,
    start,
    crash: async (app) => {
      apps.get(app)?.kill("SIGKILL");
      await apps.get(app)?.exited;
    },
    stop: async () => {
      await Promise.all([...apps.values()].map((app) => app.stop()));
    },
  };
}

/** The real ad server. It keeps its port through a crash and a restart. */
export interface AdServerProcess {
  readonly url: string;
  readonly opsUrl: string;
  start(env?: Record<string, string>): Promise<void>;
  /** Ends the process with SIGKILL. */
  crash(): Promise<void>;
  stop(): Promise<void>;
  /** Whether the ad server has recorded an acknowledgment of an ad response, and how often one was posted. */
  acknowledgmentOf(adResponseId: string): Promise<{ acknowledged: boolean; posts: number }>;
}

/** Starts it. `env` has further settings, also of later starts. */
export async function startAdServer(
  redis: TestRedis,
  keys = TEST_PROVIDER_KEY,
  env: Readonly<Record<string, string>> = {},
): Promise<AdServerProcess> {
  const port = await freeLanePort();
  const opsPort = await freeLanePort();
  const url = `http://127.0.0.1:${port}`;
  let app: AppProcess | undefined;
  const start = async (more: Record<string, string> = {}) => {
    app = await startApp("ad-server", {
      AD_SERVER_PORT: String(port),
      AD_SERVER_OPS_PORT: String(opsPort),
      AD_SERVER_API_KEYS: keys,
      REDIS_URL: redis.url,
      SHUTDOWN_TIMEOUT_MS: "5000",
      ...env,
      ...more,
    });
  };
  await start();
  return {
    url,
    opsUrl: `http://127.0.0.1:${opsPort}`,
    start,
    crash: async () => {
      app?.kill("SIGKILL");
      await app?.exited;
    },
    stop: async () => {
      await app?.stop();
    },
    acknowledgmentOf: (id) =>
      eventually(async () => {
        const key = keys.split(",")[0] ?? "";
        const response = await fetch(`${url}/acknowledgments/${id}`, {
          headers: { "X-Service-API-Key": key },
        });
        const { acknowledged, posts } = Object(await response.json());
        // On a busy machine, its Redis is slow at times.
        assert.notEqual(response.status, 503);
        return { acknowledged: acknowledged === true, posts: Number(posts) };
      }, 30_000),
  };
}

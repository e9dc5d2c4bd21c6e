/** The processes and Redis servers that are compared. Each has its own port. */
import { freePort, startTestRedis } from "@adrelay/dev-servers";
import { TEST_API_KEY } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { type BenchChild, startChild } from "./processes.ts";
import type { Bench } from "./rounds.ts";

/** A process that serves requests. */
export interface Served extends BenchChild {
  readonly origin: string;
}

/** The queue between the naive server and the bare worker. */
export const NAIVE_QUEUE = "acknowledgments";

/** Delivery attempts that run simultaneously, on both sides. */
const CONCURRENCY = 50;

export interface Surroundings {
  readonly redisUrl: string;
  readonly providerUrl: string;
  /** Further settings of Adrelay's processes. They go before all others. */
  readonly env?: Readonly<Record<string, string>>;
}

/** A process of Adrelay. */
interface App extends BenchChild {
  /** The origin of its ops listener. */
  readonly opsUrl: string;
}

/** The quota of requests is kept, but so high that one publisher can send all the load of the benchmark. */
const MANY_REQUESTS = {
  QUOTA_REQUESTS_PER_SECOND: "1000000",
  QUOTA_BURST: "1000000",
  QUOTA_BYTES_PER_SECOND: "1GB",
  QUOTA_BYTES_BURST: "1GB",
};

export async function startGateway(bench: Bench, place: Surroundings): Promise<App & Served> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const ports = { GATEWAY_PORT: `${port}`, GATEWAY_OPS_PORT: `${opsPort}` };
  const env = { ...ports, API_KEYS: TEST_API_KEY, ...MANY_REQUESTS, ...appEnv(place) };
  return served(port, await startApp(bench, { name: "gateway", opsPort, env }));
}

export async function startWorker(bench: Bench, place: Surroundings): Promise<App> {
  const opsPort = await freePort();
  const env = { WORKER_OPS_PORT: `${opsPort}`, WORKER_CONCURRENCY: `${CONCURRENCY}`, ...appEnv(place) };
  return startApp(bench, { name: "worker", opsPort, env });
}

/** A proxy in front of one model's server, for both kinds of APIs. */
export async function startProxy(
  bench: Bench,
  { modelUrl, ...place }: Surroundings & { readonly modelUrl: string },
): Promise<App & Served> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const env = {
    PROXY_PORT: `${port}`,
    PROXY_OPS_PORT: `${opsPort}`,
    OPENAI_BASE_URL: `${modelUrl}/v1`,
    ANTHROPIC_BASE_URL: modelUrl,
    // What runs at the end of a round is not waited for.
    PROXY_DRAIN_MS: "0",
    API_KEYS: TEST_API_KEY,
    ...MANY_REQUESTS,
    ...appEnv(place),
  };
  return served(port, await startApp(bench, { name: "proxy", opsPort, env }));
}

function appEnv({ redisUrl, providerUrl, env }: Surroundings): Record<string, string> {
  const provider = { PROVIDER_URL: providerUrl, PROVIDER_API_KEY: "key-at-the-provider" };
  return { REDIS_URL: redisUrl, ...provider, ...env };
}

interface AppStart {
  readonly name: "gateway" | "worker" | "proxy";
  readonly opsPort: number;
  readonly env: Readonly<Record<string, string>>;
}

async function startApp({ folder, profileDir }: Bench, { name, opsPort, env }: AppStart): Promise<App> {
  const opsUrl = `http://127.0.0.1:${opsPort}`;
  const child = await startChild({
    name,
    script: `apps/${name}/src/main.ts`,
    env,
    folder,
    readyUrl: `${opsUrl}/readyz`,
    nodeArgs: profileDir === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`],
  });
  return { ...child, opsUrl };
}

export function startProvider(bench: Bench): Promise<Served> {
  return startServer(bench, "fast-provider", "bench/fast-provider.ts", {});
}

export function startModel(bench: Bench): Promise<Served> {
  return startServer(bench, "fast-model", "bench/streams/fast-model.ts", {});
}

export function startBareModelProxy(
  bench: Bench,
  { modelUrl }: { readonly modelUrl: string },
): Promise<Served> {
  return startServer(bench, "bare-model-proxy", "bench/naive/bare-model-proxy.ts", { MODEL_URL: modelUrl });
}

export function startNaiveAdProxy(
  bench: Bench,
  place: Surroundings & { readonly modelUrl: string },
): Promise<Served> {
  return startServer(bench, "naive-ad-proxy", "bench/naive/naive-ad-proxy.ts", {
    MODEL_URL: place.modelUrl,
    PROVIDER_URL: place.providerUrl,
    REDIS_URL: place.redisUrl,
  });
}

export function startNaiveServer(bench: Bench, { redisUrl }: Surroundings): Promise<Served> {
  return startServer(bench, "naive-server", "bench/naive/naive-server.ts", {
    REDIS_URL: redisUrl,
    QUEUE: NAIVE_QUEUE,
  });
}

export function startBareProxy(
  bench: Bench,
  { providerUrl }: Omit<Surroundings, "redisUrl">,
): Promise<Served> {
  return startServer(bench, "bare-proxy", "bench/naive/bare-proxy.ts", { PROVIDER_URL: providerUrl });
}

export function startBareWorker({ folder }: Bench, place: Surroundings): Promise<BenchChild> {
  const settings = { WORKER_CONCURRENCY: `${CONCURRENCY}` };
  const env = { REDIS_URL: place.redisUrl, PROVIDER_URL: place.providerUrl, QUEUE: NAIVE_QUEUE, ...settings };
  return startChild({ name: "bare-worker", script: "bench/naive/bare-worker.ts", env, folder });
}

async function startServer(
  { folder }: Bench,
  name: string,
  script: string,
  env: Readonly<Record<string, string>>,
): Promise<Served> {
  const port = await freePort();
  return served(port, await startChild({ name, script, env: { PORT: `${port}`, ...env }, folder }));
}

function served<Child extends BenchChild>(port: number, child: Child): Child & Served {
  return { ...child, origin: `http://127.0.0.1:${port}` };
}

export type Appendfsync = "everysec" | "always";

/** A Redis that only one side uses. */
export interface BenchRedis extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** For preparations and questions of the benchmark itself, not for load. */
  readonly client: Redis;
  /** A number from INFO. */
  info(section: string, field: string): Promise<number>;
}

/**
 * Starts a Redis that never rewrites its append-only file. By default a rewrite starts at 64 MB. In a round of some
 * seconds one side could reach that size and the other one just not, which would distort the comparison.
 */
export async function startBenchRedis(
  appendfsync: Appendfsync | "no file" = "everysec",
): Promise<BenchRedis> {
  const redis = await startTestRedis(
    appendfsync === "no file"
      ? ["--appendonly", "no"]
      : ["--appendfsync", appendfsync, "--auto-aof-rewrite-percentage", "0"],
  );
  const client = new Redis(redis.url);
  // If Redis is gone, the commands reject. After Ctrl-C no command is under way, so the error event is no news.
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

/** The processes that are compared, each on ports of its own. */
import { freePort, startTestRedis } from "@adrelay/dev-servers";
import { TEST_API_KEY } from "@adrelay/testkit";
import { Redis } from "ioredis";
import { type BenchChild, startChild } from "./processes.ts";
import type { Bench } from "./rounds.ts";

/** A process that takes requests. */
export interface Served extends BenchChild {
  readonly origin: string;
}

/** The queue between the naive server and the bare worker. */
export const NAIVE_QUEUE = "acknowledgments";

/** Attempts that run at once, on both sides. */
const CONCURRENCY = 50;

export interface Surroundings {
  readonly redisUrl: string;
  readonly providerUrl: string;
}

export async function startGateway(bench: Bench, place: Surroundings): Promise<Served> {
  const [port, opsPort] = [await freePort(), await freePort()];
  const env = { GATEWAY_PORT: `${port}`, GATEWAY_OPS_PORT: `${opsPort}`, API_KEYS: TEST_API_KEY };
  return served(port, await startApp(bench, { name: "gateway", opsPort, env: { ...env, ...appEnv(place) } }));
}

export async function startWorker(bench: Bench, place: Surroundings): Promise<BenchChild> {
  const opsPort = await freePort();
  const env = { WORKER_OPS_PORT: `${opsPort}`, WORKER_CONCURRENCY: `${CONCURRENCY}`, ...appEnv(place) };
  return startApp(bench, { name: "worker", opsPort, env });
}

function appEnv({ redisUrl, providerUrl }: Surroundings): Record<string, string> {
  return { REDIS_URL: redisUrl, PROVIDER_URL: providerUrl, PROVIDER_API_KEY: "key-at-the-provider" };
}

interface AppStart {
  readonly name: "gateway" | "worker";
  readonly opsPort: number;
  readonly env: Readonly<Record<string, string>>;
}

function startApp({ folder, profileDir }: Bench, { name, opsPort, env }: AppStart): Promise<BenchChild> {
  return startChild({
    name,
    script: `apps/${name}/src/main.ts`,
    env,
    folder,
    readyUrl: `http://127.0.0.1:${opsPort}/readyz`,
    nodeArgs: profileDir === undefined ? [] : ["--cpu-prof", `--cpu-prof-dir=${profileDir}`],
  });
}

export function startProvider(bench: Bench): Promise<Served> {
  return startServer(bench, "fast-provider", "bench/fast-provider.ts", {});
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

function served(port: number, child: BenchChild): Served {
  return { ...child, origin: `http://127.0.0.1:${port}` };
}

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

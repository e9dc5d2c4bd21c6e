/** The stack of `npm start` with short limits and a faulty ad server, a Prometheus beside it, and traffic. */

import { freePort, startPrometheus } from "@adrelay/dev-servers";
import { writeScrapeConfig } from "../../e2e/observe/scrape-config.ts";
import { QUICK_SETTINGS, runTraffic } from "../../e2e/observe/traffic.ts";
import { type Stack, startStack } from "../start/stack.ts";

export interface ObservedOptions {
  readonly folder: string;
  readonly redisCacheDir: string;
  /** Prometheus. */
  readonly program: string;
  readonly durationMs: number;
  readonly stops: (() => Promise<void>)[];
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** A refused key and an outage at first, then a bit of everything. */
const FAULTS = [
  "acknowledge:401*1",
  "acknowledge:503*30",
  "acknowledge:404@4%(seed=2)",
  "acknowledge:406@3%(seed=3)",
  "acknowledge:500@5%(seed=4)",
  "start:hang@4%(seed=5)",
  "start:500@3%(seed=6)",
].join("; ");
/** When parts are killed, as shares of the run; they are started again. */
const KILLS = [
  { part: "redis", at: 0.3 },
  { part: "worker", at: 0.5 },
] as const;

/** Starts all of it; answers with the address of Prometheus. */
export async function startObserved(options: ObservedOptions): Promise<string> {
  const { folder, redisCacheDir, program, stops, signal, say } = options;
  const starting = startStack({
    home: folder,
    redisCacheDir,
    env: await makeSettings(),
    gatewayPort: undefined,
    say,
    signal,
  });
  // Also one that is still starting.
  stops.push(() =>
    starting.then(
      (stack) => stack.stop(),
      () => {},
    ),
  );
  const stack = await starting;
  const { gatewayOps, workerOps, adServer } = stack.run;
  const jobs = { "adrelay-gateway": gatewayOps, "adrelay-worker": workerOps, "adrelay-ad-server": adServer };
  const configFile = writeScrapeConfig(folder, jobs);
  signal.throwIfAborted();
  const prometheus = await startPrometheus({ program, dir: folder, configFile });
  stops.push(() => prometheus.stop());
  killParts(stack, options);
  const traffic = sendTraffic(stack, options);
  stops.push(() => traffic);
  return prometheus.url;
}

/** Nothing of the environment but where programs are: this stack is nobody's but ours. */
async function makeSettings(): Promise<NodeJS.ProcessEnv> {
  const port = async () => String(await freePort());
  return {
    PATH: process.env["PATH"],
    ADRELAY_REDIS_SERVER: process.env["ADRELAY_REDIS_SERVER"],
    ...QUICK_SETTINGS,
    REDIS_DURABILITY: "strict",
    AD_SERVER_FAULTS: FAULTS,
    // All traffic is for two ads: their plan for a day would last a minute.
    PACING: "asap",
    GATEWAY_PORT: await port(),
    GATEWAY_OPS_PORT: await port(),
    WORKER_OPS_PORT: await port(),
    AD_SERVER_PORT: await port(),
  };
}

function killParts({ run }: Stack, { durationMs, signal, say }: ObservedOptions): void {
  for (const { part, at } of KILLS) {
    const timer = setTimeout(() => {
      say(`kill -9 ${part}`);
      process.kill(run.pids[part] ?? 0, "SIGKILL");
    }, durationMs * at);
    signal.addEventListener("abort", () => clearTimeout(timer));
  }
}

async function sendTraffic({ run }: Stack, { signal, say }: ObservedOptions): Promise<void> {
  try {
    await runTraffic({
      gatewayUrl: run.gateway,
      apiKey: run.apiKey,
      deadlineMs: Number(QUICK_SETTINGS.ACK_DEADLINE_MS),
      signal,
    });
  } catch (error) {
    if (!signal.aborted) {
      say(`the traffic ended: ${error instanceof Error ? error.message : String(error)}`);
    }
  }
}

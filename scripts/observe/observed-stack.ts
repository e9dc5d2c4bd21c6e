/** The stack of `npm start` with short limits and a faulty ad server, together with a Prometheus and traffic. */
import { freePort, startPrometheus } from "@adrelay/dev-servers";
import { QUICK_SETTINGS, runTraffic, writeScrapeConfig } from "../../e2e/observe/index.ts";
import { environment } from "../environment.ts";
import { type Stack, startStack } from "../start/stack.ts";

export interface ObservedOptions {
  readonly folder: string;
  /** The path of Prometheus. */
  readonly program: string;
  readonly durationMs: number;
  readonly stops: (() => Promise<void>)[];
  readonly signal: AbortSignal;
  readonly say: (line: string) => void;
}

/** First a refused key and an outage, then faults of all kinds. */
const FAULTS = [
  "acknowledge:401*1",
  "acknowledge:503*30",
  "acknowledge:404@4%(seed=2)",
  "acknowledge:406@3%(seed=3)",
  "acknowledge:500@5%(seed=4)",
  "start:hang@4%(seed=5)",
  "start:500@3%(seed=6)",
].join("; ");
/** When parts are killed, as shares of the run. The stack starts them again. */
const KILLS = [
  // Early: the turns that it leaves are settled once their leases have ended, after 20 seconds.
  { part: "proxy", at: 0.2 },
  { part: "redis", at: 0.3 },
  { part: "worker", at: 0.5 },
] as const;

/** Starts everything and resolves to the address of Prometheus. */
export async function startObserved(options: ObservedOptions): Promise<string> {
  const { folder, program, stops, signal, say } = options;
  const starting = startStack({
    home: folder,
    env: await makeSettings(),
    gatewayPort: undefined,
    modelUrls: { openai: undefined, anthropic: undefined },
    say,
    signal,
  });
  // This also stops a stack that is still starting.
  stops.push(() =>
    starting.then(
      (stack) => stack.stop(),
      () => {},
    ),
  );
  const stack = await starting;
  const { gatewayOps, workerOps, proxyOps, adServerOps } = stack.run;
  const ofAdServer = adServerOps === undefined ? {} : { "adrelay-ad-server": adServerOps };
  const jobs = {
    "adrelay-gateway": gatewayOps,
    "adrelay-worker": workerOps,
    "adrelay-proxy": proxyOps,
    ...ofAdServer,
  };
  const configFile = writeScrapeConfig(folder, jobs);
  signal.throwIfAborted();
  const prometheus = await startPrometheus({ program, dir: folder, configFile });
  stops.push(() => prometheus.stop());
  killParts(stack, options);
  const traffic = sendTraffic(stack, options);
  stops.push(() => traffic);
  return prometheus.url;
}

/** Passes on only the paths of programs, so that no setting of the user changes the stack. */
async function makeSettings(): Promise<NodeJS.ProcessEnv> {
  const port = async () => String(await freePort());
  return {
    PATH: environment["PATH"],
    ADRELAY_REDIS_SERVER: environment["ADRELAY_REDIS_SERVER"],
    ...QUICK_SETTINGS,
    REDIS_DURABILITY: "strict",
    AD_SERVER_FAULTS: FAULTS,
    // All traffic is for two ads. With even pacing a day's plan for them would be used up within a minute.
    PACING: "asap",
    GATEWAY_PORT: await port(),
    GATEWAY_OPS_PORT: await port(),
    WORKER_OPS_PORT: await port(),
    PROXY_PORT: await port(),
    PROXY_OPS_PORT: await port(),
    DEMO_MODEL_PORT: await port(),
    AD_SERVER_PORT: await port(),
    AD_SERVER_OPS_PORT: await port(),
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
      proxyUrl: run.proxy,
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

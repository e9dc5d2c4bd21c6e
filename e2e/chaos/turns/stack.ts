/** What a run with turns runs: two proxies, a gateway, a worker, the demo model, a Redis and an ad service. */
import { randomUUID } from "node:crypto";
import { freeLanePort, startTestRedis, type TestRedis } from "@adrelay/dev-servers";
import {
  type AppName,
  callerKeyOf,
  filled,
  type ScriptedProvider,
  type SocketProxy,
  startScriptedProvider,
  startSocketProxy,
  writePublishersFile,
} from "@adrelay/testkit";
import { Redis } from "ioredis";
import { ChaosApp } from "../chaos-app.ts";
import { LogWatch } from "../log-watch.ts";
import { type ProxyId, TURN_APPS, type TurnApp } from "./faults.ts";
import { TURN_WAIT_MS } from "./loops.ts";

export interface SoldAd {
  readonly session: string;
  /** By the wall clock. */
  readonly atMs: number;
  /** What must stand in place of the user's text. */
  readonly enhancedPrompt: string;
}

export interface TurnsStack {
  readonly redis: TestRedis;
  /** A direct connection, to read the ledger in the end. */
  readonly admin: Redis;
  readonly provider: ScriptedProvider;
  /** By their ids, the ads that the ad service has given. */
  readonly sold: ReadonlyMap<string, SoldAd>;
  readonly apps: ReadonlyMap<TurnApp, ChaosApp>;
  link(proxy: ProxyId, end: "redis" | "model"): SocketProxy;
  proxyUrlOf(proxy: ProxyId): string;
  readonly gatewayUrl: string;
  /** Of the replicas that show the ledger's counts, by app. */
  readonly opsUrls: ReadonlyMap<string, string>;
  readonly callerKey: string;
  readonly logs: LogWatch;
  readonly processProblems: string[];
  dispose(): Promise<void>;
}

const PUBLISHER = "acme";
const SHUTDOWN_TIMEOUT_MS = 5000;
const DRAIN_MS = 500;
/** Shorter than many streams: a turn that still streams must not be missed. */
export const ACK_DEADLINE_MS = 2000;

const SETTINGS = {
  REDIS_DURABILITY: "strict",
  ACK_DEADLINE_MS: String(ACK_DEADLINE_MS),
  ACK_WAIT_MS: "300",
  DELIVERY_TIMEOUT_MS: "2000",
  RETRY_SCHEDULE: "200ms,500ms,1s,2s",
  SWEEP_INTERVAL_MS: "200",
  SHUTDOWN_TIMEOUT_MS: String(SHUTDOWN_TIMEOUT_MS),
  BREAKER_PROBE_INTERVAL_MS: "500",
  RECOVERY_RATE_PER_SECOND: "2000",
  // A busy machine must not cost the ads.
  PROXY_INJECTION_TIMEOUT_MS: "3000",
  PROXY_TURN_WAIT_MS: String(TURN_WAIT_MS),
  PROXY_IDLE_TIMEOUT_MS: "4s",
  // Some streams end meanwhile, and the others are cut.
  PROXY_DRAIN_MS: String(DRAIN_MS),
  DEMO_MODEL_DELAY_MS: "5",
  ACME_KEY: "acme-at-the-provider",
};

export async function startTurnsStack({
  logsDir,
}: {
  readonly logsDir?: string | undefined;
}): Promise<TurnsStack> {
  const [redis, provider] = await Promise.all([startTestRedis(), startScriptedProvider()]);
  const sold = sellAds(provider);
  const publishers = writePublishersFile([{ id: PUBLISHER, providerUrl: provider.url, keyEnv: "ACME_KEY" }]);
  const logs = new LogWatch(logsDir);
  const processProblems: string[] = [];
  const modelPort = await freeLanePort();
  const links = new Map<string, SocketProxy>();
  const ports = new Map<TurnApp, { readonly port: number; readonly opsPort: number }>();
  const apps = new Map<TurnApp, ChaosApp>();
  for (const id of TURN_APPS) {
    const own = { port: id === "model" ? modelPort : await freeLanePort(), opsPort: await freeLanePort() };
    const [toRedis, toModel] = [await startSocketProxy(redis.port), await startSocketProxy(modelPort)];
    links.set(`${id} redis`, toRedis).set(`${id} model`, toModel);
    ports.set(id, own);
    const modelUrl = `http://127.0.0.1:${toModel.port}`;
    const env = {
      ...SETTINGS,
      ...portSettings(id, own),
      REDIS_URL: `redis://127.0.0.1:${toRedis.port}`,
      PUBLISHERS_FILE: publishers.path,
      OPENAI_BASE_URL: `${modelUrl}/v1`,
      ANTHROPIC_BASE_URL: modelUrl,
    };
    const onLogText = (line: string) => logs.read(id, line);
    const onProblem = (what: string) => void processProblems.push(what);
    const shutdownTimeoutMs = SHUTDOWN_TIMEOUT_MS + (APP_NAMES[id] === "proxy" ? DRAIN_MS : 0);
    apps.set(id, new ChaosApp({ id, app: APP_NAMES[id], env, onLogText, onProblem, shutdownTimeoutMs }));
  }
  await Promise.all([...apps.values()].map((app) => app.start()));
  const admin = new Redis(redis.url, { maxRetriesPerRequest: null, retryStrategy: () => 50 });
  // It reconnects automatically. Errors are expected while a fault stops Redis.
  admin.on("error", () => {});
  const urlOf = (id: TurnApp, which: "port" | "opsPort") => `http://127.0.0.1:${ports.get(id)?.[which]}`;
  const replicas = TURN_APPS.filter((id) => id !== "model");
  return {
    redis,
    admin,
    provider,
    sold,
    apps,
    link: (proxy, end) => requireLink(links, `${proxy} ${end}`),
    proxyUrlOf: (proxy) => urlOf(proxy, "port"),
    gatewayUrl: urlOf("gateway-1", "port"),
    opsUrls: new Map(replicas.map((id) => [id, urlOf(id, "opsPort")])),
    callerKey: callerKeyOf(PUBLISHER),
    logs,
    processProblems,
    dispose: async () => {
      await Promise.all([...apps.values()].map((app) => app.crash()));
      admin.disconnect();
      await Promise.all([provider.close(), ...[...links.values()].map((link) => link.close())]);
      await redis.dispose();
      publishers.remove();
    },
  };
}

const APP_NAMES: Readonly<Record<TurnApp, AppName>> = {
  "proxy-1": "proxy",
  "proxy-2": "proxy",
  "worker-1": "worker",
  "gateway-1": "gateway",
  model: "demo-model",
};

function portSettings(
  id: TurnApp,
  { port, opsPort }: { readonly port: number; readonly opsPort: number },
): Record<string, string> {
  switch (id) {
    case "proxy-1":
    case "proxy-2":
      return { PROXY_PORT: String(port), PROXY_OPS_PORT: String(opsPort) };
    case "worker-1":
      return { WORKER_OPS_PORT: String(opsPort) };
    case "gateway-1":
      return { GATEWAY_PORT: String(port), GATEWAY_OPS_PORT: String(opsPort) };
    case "model":
      return { DEMO_MODEL_PORT: String(port) };
    default:
      return id satisfies never;
  }
}

/** It has an ad of its own for each prompt, in a form by which the demo model knows it. It counts an acknowledgment once. */
function sellAds(provider: ScriptedProvider): ReadonlyMap<string, SoldAd> {
  const sold = new Map<string, SoldAd>();
  provider.onStart(({ fields }) => {
    const id = randomUUID();
    const ad = `<sponsored_product_x1>\n<product>Velmora ${id}</product>\n</sponsored_product_x1>`;
    const enhancedPrompt = `${ad}\n<user_message_x1>\n${fields["prompt"]}\n</user_message_x1>`;
    const session = String(Object(fields["request_context"])["session_id"]);
    sold.set(id, { session, atMs: Date.now(), enhancedPrompt });
    return filled({ ad_response_id: id, enhanced_prompt: enhancedPrompt });
  });
  provider.onAcknowledge(({ fields }, count) =>
    count === 0
      ? {
          kind: "answer",
          status: 200,
          body: {
            ad_ack_id: fields["ad_response_id"],
            status: fields["llm_response"] === "" ? "no_ad_used" : "ok",
            success: true,
          },
        }
      : { kind: "answer", status: 409, body: { code: "already_acknowledged" } },
  );
  return sold;
}

function requireLink(links: ReadonlyMap<string, SocketProxy>, name: string): SocketProxy {
  const link = links.get(name);
  if (link === undefined) {
    throw new RangeError(`there is no link ${name}`);
  }
  return link;
}

/**
 * All of Adrelay on one machine. Parts start in the order of their needs and stop in reverse. If a part can't start, the
 * parts that were started before it are stopped.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { trimmed } from "@adrelay/service-kit";
import { type LocalKeys, loadLocalKeys, type RunFile, writeRunFile } from "./home.ts";
import type { KeptProcess } from "./kept-process.ts";
import { PartError, type PartOptions, startApp, startOwnRedis } from "./parts.ts";
import { absentRedis, equalPorts, takenPorts, type WantedPort } from "./preflight.ts";
import { settingFaults } from "./settings.ts";

export interface StackOptions {
  /** The folder of data, logs and keys. */
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly gatewayPort: number | undefined;
  readonly say: (line: string) => void;
  /** Aborts the start: the parts that run by then are stopped. */
  readonly signal: AbortSignal;
}

export interface Stack {
  readonly run: RunFile;
  /** Why the demo must not be sent through this stack; undefined if it may. */
  readonly demoHindrance: string | undefined;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 30_000;
const RELAY_APPS = ["worker", "gateway"] as const;

/** Starts everything and waits until it is ready. Rejects with a PartError, with nothing left running. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { home, gatewayPort, say, signal } = options;
  const env = trimmed(options.env);
  mkdirSync(join(home, "logs"), { recursive: true });
  const keys = loadLocalKeys(join(home, "keys.json"));
  const ports = wantedPorts(env, gatewayPort);
  const plan = appSettings(env, { keys, ports, redisUrl: env["REDIS_URL"] || "redis://127.0.0.1:6379" });
  const hasAdServer = !isElsewhere(env, ports);
  const apps = hasAdServer ? (["ad-server", ...RELAY_APPS] as const) : RELAY_APPS;
  const used = Object.values(ports).filter((port) => hasAdServer || !isOfAdServer(port));
  const hindrances = [...settingFaults(plan), ...equalPorts(used)];
  if (hindrances.length === 0) {
    hindrances.push(...(await takenPorts(used)), ...(await absentRedis(env["REDIS_URL"])));
  }
  if (hindrances.length > 0) {
    throw new PartError(hindrances.join("\n"));
  }
  const parts: KeptProcess[] = [];
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= stopInReverse(parts);
    return stopping;
  };
  const runFile = join(home, "run.json");
  let save = () => {};
  try {
    const kept = { say, onRestarted: () => save() };
    const redisUrl = env["REDIS_URL"] || (await addOwnRedis(parts, home, { env, ...kept }));
    const settings = appSettings(env, { keys, ports, redisUrl });
    const run = () => describeRun({ ports, redisUrl, settings, parts });
    save = () => writeRunFile(runFile, run());
    for (const app of apps) {
      signal.throwIfAborted();
      const logFile = join(home, "logs", `${app}.log`);
      parts.push(await startApp({ app, env: settings, logFile, ...kept }));
      say(`${app} runs (pid ${parts.at(-1)?.pid}), log in ${logFile}`);
    }
    await waitUntilReady(run(), signal);
    save();
    return { run: run(), demoHindrance: demoHindrance(env, ports), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function stopInReverse(parts: readonly KeptProcess[]): Promise<void> {
  for (const part of parts.toReversed()) {
    await part.stop();
  }
}

/** The demo needs our own ad server and a known key. From another ad service it would buy a real ad. */
function demoHindrance(env: NodeJS.ProcessEnv, ports: Ports): string | undefined {
  if (isElsewhere(env, ports)) {
    return "PROVIDER_URL names another ad service";
  }
  return env["PUBLISHERS_FILE"] ? "the keys are those of PUBLISHERS_FILE" : undefined;
}

type Ports = Readonly<
  Record<"gateway" | "gatewayOps" | "workerOps" | "adServer" | "adServerOps", WantedPort>
>;

function wantedPorts(env: NodeJS.ProcessEnv, gatewayPort: number | undefined): Ports {
  const want = (part: string, prefix: string, fallback: number): WantedPort => ({
    part,
    host: env[`${prefix}_HOST`] || "127.0.0.1",
    port: Number(env[`${prefix}_PORT`] || fallback),
    setting: `${prefix}_PORT`,
  });
  const gateway = want("gateway", "GATEWAY", 8080);
  return {
    gateway: { ...gateway, port: gatewayPort ?? gateway.port, setting: "--port or GATEWAY_PORT" },
    gatewayOps: want("gateway's ops listener", "GATEWAY_OPS", 8081),
    workerOps: want("worker's ops listener", "WORKER_OPS", 8082),
    adServer: want("ad server", "AD_SERVER", 8090),
    adServerOps: want("ad server's ops listener", "AD_SERVER_OPS", 8091),
  };
}

function isOfAdServer({ setting }: WantedPort): boolean {
  return setting.startsWith("AD_SERVER_");
}

/** Whether PROVIDER_URL names another ad service than the one that we start. */
function isElsewhere(env: NodeJS.ProcessEnv, { adServer }: Ports): boolean {
  const url = env["PROVIDER_URL"];
  if (!url || !URL.canParse(url)) {
    return false;
  }
  const { hostname, port } = new URL(url);
  return port !== String(adServer.port) || !(LOOPBACK.has(hostname) || hostname === adServer.host);
}

const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

async function addOwnRedis(parts: KeptProcess[], home: string, options: PartOptions): Promise<string> {
  const redis = await startOwnRedis({ ...options, dataDir: join(home, "redis") });
  parts.push(redis.part);
  return redis.url;
}

function appSettings(
  env: NodeJS.ProcessEnv,
  { keys, ports, redisUrl }: { keys: LocalKeys; ports: Ports; redisUrl: string },
): NodeJS.ProcessEnv {
  const ownKeys = env["PUBLISHERS_FILE"] ? {} : { API_KEYS: env["API_KEYS"] || keys.apiKey };
  return {
    ...env,
    ...ownKeys,
    REDIS_URL: redisUrl,
    GATEWAY_PORT: String(ports.gateway.port),
    PROVIDER_URL: env["PROVIDER_URL"] || urlOf(ports.adServer),
    ...(isElsewhere(env, ports) ? {} : withoutProxyTo(urlOf(ports.adServer), env)),
    ...providerKeys(env, keys.providerKey, isElsewhere(env, ports)),
    ADMIN_TOKEN: env["ADMIN_TOKEN"] || keys.adminToken,
    SESSION_HASH_KEYS: env["SESSION_HASH_KEYS"] || keys.sessionHashKey,
  };
}

/** Our own ad server is called directly, whatever proxy this machine has. The name in lower case comes first. */
function withoutProxyTo(url: string, env: NodeJS.ProcessEnv) {
  const others = env["no_proxy"] || env["NO_PROXY"];
  return { no_proxy: [new URL(url).hostname, ...(others ? [others] : [])].join(",") };
}

/** The gateway's key at the ad service, and the keys that our ad server accepts. One setting is enough for both. */
function providerKeys(env: NodeJS.ProcessEnv, localKey: string, isElsewhere: boolean) {
  // Our ad server does not know the key of another service.
  const keysOf = (name: string) => (env[name] ?? "").split(/[,|]/).map((key) => key.trim());
  const revoked = new Set(["", ...keysOf("AD_SERVER_REVOKED_KEYS")]);
  const firstKey = keysOf("AD_SERVER_API_KEYS").find((key) => !revoked.has(key));
  const isInFile = (env["PROVIDER_API_KEY_FILE"] ?? "").trim() !== "";
  return {
    PROVIDER_API_KEY:
      env["PROVIDER_API_KEY"] || (isInFile ? "" : (isElsewhere ? undefined : firstKey) || localKey),
    AD_SERVER_API_KEYS:
      env["AD_SERVER_API_KEYS"] || (isElsewhere ? undefined : env["PROVIDER_API_KEY"]) || localKey,
  };
}

function describeRun(stack: {
  ports: Ports;
  redisUrl: string;
  settings: NodeJS.ProcessEnv;
  parts: KeptProcess[];
}): RunFile {
  const { ports, redisUrl, settings, parts } = stack;
  const pids = Object.fromEntries(parts.map((part) => [part.name, part.pid]));
  return {
    gateway: urlOf(ports.gateway),
    gatewayOps: urlOf(ports.gatewayOps),
    workerOps: urlOf(ports.workerOps),
    adServer: "ad-server" in pids ? urlOf(ports.adServer) : undefined,
    adServerOps: "ad-server" in pids ? urlOf(ports.adServerOps) : undefined,
    redis: redisUrl,
    apiKey: (settings["API_KEYS"] ?? "").split(",")[0] ?? "",
    adminToken: settings["ADMIN_TOKEN"] ?? "",
    pids: { start: process.pid, ...pids },
  };
}

/** An address for clients. A listener on all addresses is called on the loopback address. */
function urlOf({ host, port }: WantedPort): string {
  const called = host === "0.0.0.0" ? "127.0.0.1" : host === "::" ? "::1" : host;
  return `http://${called.includes(":") ? `[${called}]` : called}:${port}`;
}

async function waitUntilReady(
  { gatewayOps, workerOps, adServerOps }: RunFile,
  signal: AbortSignal,
): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  const ofAdServer = adServerOps === undefined ? {} : { "ad-server": adServerOps };
  for (const [name, url] of Object.entries({ ...ofAdServer, worker: workerOps, gateway: gatewayOps })) {
    for (let answer = await askReady(url); answer !== "ready"; answer = await askReady(url)) {
      signal.throwIfAborted();
      if (performance.now() > deadlineMs) {
        throw new PartError(`${name} did not get ready: ${answer}`);
      }
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

async function askReady(url: string): Promise<string> {
  try {
    const response = await fetch(`${url}/readyz`, { signal: AbortSignal.timeout(2000) });
    return response.ok ? "ready" : await response.text();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

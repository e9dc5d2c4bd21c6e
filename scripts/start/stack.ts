/**
 * All of Adrelay on one machine. Parts start in the order of their needs, those that don't need each other at the same time, and
 * stop in reverse. If a part can't start, the parts that were started with it or before it are stopped.
 */
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import { trimmed } from "@adrelay/service-kit";
import {
  type AppName,
  appSettings,
  hasDemoModel,
  ignoredModelUrls,
  isElsewhere,
  keyHeadersOf,
  type ModelUrls,
  proxySettings,
} from "./app-settings.ts";
import { loadLocalKeys, type RunFile, writeRunFile } from "./home.ts";
import type { KeptProcess } from "./kept-process.ts";
import { PartError } from "./part-error.ts";
import { type PartOptions, startApp, startOwnRedis } from "./parts.ts";
import { type Ports, urlOf, usedPorts, wantedPorts } from "./ports.ts";
import { absentRedis, equalPorts, takenPorts } from "./preflight.ts";
import { settingFaults } from "./settings.ts";

export interface StackOptions {
  /** The folder of data, logs and keys. */
  readonly home: string;
  readonly env: NodeJS.ProcessEnv;
  readonly gatewayPort: number | undefined;
  readonly modelUrls: ModelUrls;
  readonly say: (line: string) => void;
  /** Aborts the start at once: the parts that run or start by then are stopped. */
  readonly signal: AbortSignal;
}

export interface Stack {
  readonly run: RunFile;
  /** Why the demo must not be sent through this stack; undefined if it may. */
  readonly demoHindrance: string | undefined;
  /** Why the demo of the proxy must not be; it costs money if another model's server answers. */
  readonly turnHindrance: string | undefined;
  stop(): Promise<void>;
}

const READY_TIMEOUT_MS = 30_000;

/** Starts everything and waits until it is ready. Rejects with a PartError, with nothing left running. */
export async function startStack(options: StackOptions): Promise<Stack> {
  const { home, modelUrls, say, signal } = options;
  const env = trimmed(options.env);
  mkdirSync(join(home, "logs"), { recursive: true });
  const keys = loadLocalKeys(join(home, "keys.json"));
  const ports = wantedPorts(env, options.gatewayPort);
  const settingsWith = (redisUrl: string) => appSettings(env, { keys, ports, redisUrl, modelUrls });
  const given = env["REDIS_URL"];
  await refuseHindrances({
    settings: settingsWith(given || "redis://127.0.0.1:6379"),
    ports,
    env,
    modelUrls,
  });
  ignoredModelUrls(env, modelUrls).forEach(say);
  const parts: KeptProcess[] = [];
  let stopping: Promise<void> | undefined;
  const stop = () => {
    stopping ??= stopInReverse(parts, say);
    return stopping;
  };
  let save = () => {};
  try {
    const kept = { say, signal, onRestarted: () => save() };
    const redisUrl = given || (await addOwnRedis(parts, home, { env, ...kept }));
    const settings = settingsWith(redisUrl);
    const run = () => describeRun({ ports, redisUrl, settings, parts });
    save = () => writeRunFile(join(home, "run.json"), run());
    for (const apps of appsToStart(env, ports, modelUrls)) {
      signal.throwIfAborted();
      await addApps(parts, apps, { home, env: settings, ...kept });
    }
    await waitUntilReady(run(), signal);
    save();
    return { run: run(), ...hindrancesOf(env, ports, modelUrls), stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

interface Plan {
  readonly settings: NodeJS.ProcessEnv;
  readonly ports: Ports;
  readonly env: NodeJS.ProcessEnv;
  readonly modelUrls: ModelUrls;
}

/** Throws a PartError with all that would keep a part from starting. */
async function refuseHindrances({ settings, ports, env, modelUrls }: Plan): Promise<void> {
  const used = usedPorts(ports, {
    hasAdServer: !isElsewhere(env, ports),
    hasDemoModel: hasDemoModel(modelUrls),
  });
  const hindrances = [...settingFaults(settings), ...equalPorts(used)];
  if (hindrances.length === 0) {
    hindrances.push(...(await takenPorts(used)), ...(await absentRedis(env)));
  }
  if (hindrances.length > 0) {
    throw new PartError(hindrances.join("\n"));
  }
}

/** Groups of apps. Those of a group start at the same time; workers come before what gives them work. */
function appsToStart(env: NodeJS.ProcessEnv, ports: Ports, modelUrls: ModelUrls): AppName[][] {
  const called: AppName[] = [
    ...(isElsewhere(env, ports) ? [] : (["ad-server"] as const)),
    ...(hasDemoModel(modelUrls) ? (["demo-model"] as const) : []),
  ];
  return [called, ["worker", "gateway", "proxy"]];
}

/** Starts apps at the same time. What runs is in the list afterwards, also if one of them couldn't start. */
async function addApps(
  parts: KeptProcess[],
  apps: readonly AppName[],
  { home, env, ...options }: PartOptions & { readonly home: string },
): Promise<void> {
  const started = await Promise.allSettled(
    apps.map((app) =>
      startApp({
        ...options,
        app,
        env: app === "proxy" ? proxySettings(env) : env,
        logFile: join(home, "logs", `${app}.log`),
      }),
    ),
  );
  const failed = started.find((one) => one.status === "rejected");
  for (const one of started) {
    if (one.status === "fulfilled") {
      const { name, pid } = one.value;
      parts.push(one.value);
      options.say(`${name} runs (pid ${pid}), log in ${join(home, "logs", `${name}.log`)}`);
    }
  }
  if (failed !== undefined) {
    throw failed.reason;
  }
}

async function stopInReverse(parts: readonly KeptProcess[], say: (line: string) => void): Promise<void> {
  for (const part of parts.toReversed()) {
    const slow = setTimeout(() => say(WAITS[part.name] ?? `waiting for ${part.name} to end`), SLOW_STOP_MS);
    await part.stop().finally(() => clearTimeout(slow));
  }
}

/** A stop that takes longer says what it waits for. */
const SLOW_STOP_MS = 500;
const WAITS: Readonly<Record<string, string>> = {
  proxy:
    "waiting for the proxy: answers that run are cut after PROXY_DRAIN_MS, and what was written is acknowledged",
  worker: "waiting for the worker: attempts that run end, or reach DELIVERY_TIMEOUT_MS",
};

/** The demos need our own ad server and a known key. From another ad service they would buy real ads. */
function hindrancesOf(env: NodeJS.ProcessEnv, ports: Ports, { openai }: ModelUrls) {
  const demoHindrance = isElsewhere(env, ports)
    ? "PROVIDER_URL names another ad service"
    : env["PUBLISHERS_FILE"]
      ? "the keys are those of PUBLISHERS_FILE"
      : undefined;
  const isRealModel = openai !== undefined;
  const turnHindrance = isRealModel ? "--model-url names another model's server" : demoHindrance;
  return { demoHindrance, turnHindrance };
}

async function addOwnRedis(parts: KeptProcess[], home: string, options: PartOptions): Promise<string> {
  const redis = await startOwnRedis({ ...options, dataDir: join(home, "redis") });
  parts.push(redis.part);
  return redis.url;
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
    proxy: urlOf(ports.proxy),
    proxyOps: urlOf(ports.proxyOps),
    adServer: "ad-server" in pids ? urlOf(ports.adServer) : undefined,
    adServerOps: "ad-server" in pids ? urlOf(ports.adServerOps) : undefined,
    demoModel: "demo-model" in pids ? urlOf(ports.demoModel) : undefined,
    redis: redisUrl,
    apiKey: (settings["API_KEYS"] ?? "").split(",")[0] ?? "",
    keyHeaders: keyHeadersOf(settings),
    adminToken: settings["ADMIN_TOKEN"] ?? "",
    pids: { start: process.pid, ...pids },
  };
}

async function waitUntilReady(run: RunFile, signal: AbortSignal): Promise<void> {
  const deadlineMs = performance.now() + READY_TIMEOUT_MS;
  const probed = {
    "ad-server": run.adServerOps,
    "demo-model": run.demoModel,
    worker: run.workerOps,
    gateway: run.gatewayOps,
    proxy: run.proxyOps,
  };
  for (const [name, url] of Object.entries(probed)) {
    if (url === undefined) {
      continue;
    }
    const ask = () => askReady(url, signal);
    for (let answer = await ask(); answer !== "ready"; answer = await ask()) {
      signal.throwIfAborted();
      if (performance.now() > deadlineMs) {
        throw new PartError(`${name} did not get ready: ${answer}`);
      }
      await new Promise((done) => setTimeout(done, 50));
    }
  }
}

async function askReady(url: string, signal: AbortSignal): Promise<string> {
  try {
    const response = await fetch(`${url}/readyz`, {
      signal: AbortSignal.any([AbortSignal.timeout(2000), signal]),
    });
    return response.ok ? "ready" : await response.text();
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

/** What `npm start` sets for the apps: their keys, and the addresses of each other. */
import { API_KEY_HEADER } from "@adrelay/contract";
import { loadConfig } from "@adrelay/service-kit";
import { z } from "zod";
import { MODEL_KEY_HEADERS, PROXY_SETTINGS } from "../../apps/proxy/src/config.ts";
import { PartError } from "./part-error.ts";
import { type Ports, urlOf } from "./ports.ts";

/** The apps of the local stack. */
export type AppName = "ad-server" | "demo-model" | "gateway" | "proxy" | "worker";

/** The models' servers that the user has named; undefined: the demo model. */
export interface ModelUrls {
  readonly openai: string | undefined;
  readonly anthropic: string | undefined;
}

/** The keys of the local stack. They are kept, because the data belong to them. */
export interface LocalKeys {
  readonly apiKey: string;
  readonly providerKey: string;
  readonly adminToken: string;
  readonly sessionHashKey: string;
}

/** Answers that run when the stack stops are cut after this time, so that Ctrl-C doesn't take long. */
const DRAIN_MS = 2000;
const LOOPBACK: ReadonlySet<string> = new Set(["127.0.0.1", "localhost", "[::1]"]);

export interface AppSettingsOptions {
  readonly keys: LocalKeys;
  readonly ports: Ports;
  readonly redisUrl: string;
  readonly modelUrls: ModelUrls;
}

/** The environment of all apps. */
export function appSettings(env: NodeJS.ProcessEnv, options: AppSettingsOptions): NodeJS.ProcessEnv {
  const { keys, ports, redisUrl, modelUrls } = options;
  const ownKeys = env["PUBLISHERS_FILE"] ? {} : { API_KEYS: env["API_KEYS"] || keys.apiKey };
  const demoModel = urlOf(ports.demoModel);
  const ownServers = [
    ...(isElsewhere(env, ports) ? [] : [urlOf(ports.adServer)]),
    ...(hasDemoModel(modelUrls) ? [demoModel] : []),
  ];
  return {
    ...env,
    ...ownKeys,
    REDIS_URL: redisUrl,
    GATEWAY_PORT: String(ports.gateway.port),
    PROVIDER_URL: env["PROVIDER_URL"] || urlOf(ports.adServer),
    ...withoutProxyTo(ownServers, env),
    ...providerKeys(env, keys.providerKey, isElsewhere(env, ports)),
    OPENAI_BASE_URL: modelUrls.openai ?? `${demoModel}/v1`,
    ANTHROPIC_BASE_URL: modelUrls.anthropic ?? demoModel,
    PROXY_DRAIN_MS: env["PROXY_DRAIN_MS"] || String(DRAIN_MS),
    ADMIN_TOKEN: env["ADMIN_TOKEN"] || keys.adminToken,
    SESSION_HASH_KEYS: env["SESSION_HASH_KEYS"] || keys.sessionHashKey,
  };
}

/**
 * What the proxy gets of them. The gateway may take a publisher's key from a header in which models' servers expect theirs, and
 * the proxy may not. So one value can't be right for both.
 */
export function proxySettings(settings: NodeJS.ProcessEnv): NodeJS.ProcessEnv {
  const names = (settings["API_KEY_HEADERS"] ?? "").split(",").map((name) => name.trim());
  const others = names.filter((name) => !MODEL_KEY_HEADERS.includes(name.toLowerCase()));
  return others.length === names.length ? settings : { ...settings, API_KEY_HEADERS: others.join(",") };
}

const { SHUTDOWN_DELAY_MS, SHUTDOWN_TIMEOUT_MS, PROXY_DRAIN_MS } = PROXY_SETTINGS;
const stopSettings = z.object({ SHUTDOWN_DELAY_MS, SHUTDOWN_TIMEOUT_MS, PROXY_DRAIN_MS });
/** Beyond what the settings say. */
const STOP_MARGIN_MS = 3000;

/** How long an app may take to stop before it is killed, in ms. Throws a PartError that names each setting that can't be used. */
export function stopLimitMs(app: AppName, settings: NodeJS.ProcessEnv): number {
  const result = loadConfig(stopSettings, settings);
  if (result.kind === "faulty") {
    throw new PartError(result.faults.map(({ path, message }) => `${path}: ${message}`).join("\n"));
  }
  const { config } = result;
  const drainMs = app === "proxy" ? config.PROXY_DRAIN_MS : 0;
  return config.SHUTDOWN_DELAY_MS + drainMs + config.SHUTDOWN_TIMEOUT_MS + STOP_MARGIN_MS;
}

/** The headers in which the demos and the printed commands send the publisher's key: the first ones that are taken. */
export function keyHeadersOf(settings: NodeJS.ProcessEnv): {
  readonly gateway: string;
  readonly proxy: string;
} {
  const firstOf = (names: string | undefined) =>
    (names ?? "")
      .split(",")
      .map((name) => name.trim())
      .find((name) => name !== "") ?? API_KEY_HEADER;
  return {
    gateway: firstOf(settings["API_KEY_HEADERS"]),
    proxy: firstOf(proxySettings(settings)["API_KEY_HEADERS"]),
  };
}

/** Whether some calls go to the demo model. */
export function hasDemoModel({ openai, anthropic }: ModelUrls): boolean {
  return openai === undefined || anthropic === undefined;
}

/** Whether PROVIDER_URL names another ad service than the one that we start. */
export function isElsewhere(env: NodeJS.ProcessEnv, { adServer }: Ports): boolean {
  const url = env["PROVIDER_URL"];
  if (!url || !URL.canParse(url)) {
    return false;
  }
  const { hostname, port } = new URL(url);
  return port !== String(adServer.port) || !(LOOPBACK.has(hostname) || hostname === adServer.host);
}

/**
 * What the user should know of the variables that OpenAI's and Anthropic's clients read, too. They are often set for another program, so
 * they alone never send a prompt to a server that costs money.
 */
export function ignoredModelUrls(env: NodeJS.ProcessEnv, { openai, anthropic }: ModelUrls): string[] {
  const tell = (name: string, option: string, given: string | undefined) =>
    env[name]?.trim() && given === undefined
      ? [`${name} is set, but npm start uses its demo model; for that server start it with ${option} URL`]
      : [];
  return [
    ...tell("OPENAI_BASE_URL", "--model-url", openai),
    ...tell("ANTHROPIC_BASE_URL", "--anthropic-url", anthropic),
  ];
}

/** Our own servers are called directly, whatever proxy this machine has. The name in lower case comes first. */
function withoutProxyTo(urls: readonly string[], env: NodeJS.ProcessEnv) {
  const others = env["no_proxy"] || env["NO_PROXY"];
  const hosts = new Set(urls.map((url) => new URL(url).hostname));
  return hosts.size === 0 ? {} : { no_proxy: [...hosts, ...(others ? [others] : [])].join(",") };
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

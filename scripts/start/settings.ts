/** The settings that `npm start` passes to the apps: from the environment and `.env`, and what is wrong with them. */
import { existsSync } from "node:fs";
import { misspeltNames, readEnvFile } from "@adrelay/service-kit";
import { AD_SERVER_SETTINGS, loadAdServerConfig } from "../../apps/ad-server/src/config.ts";
import { DEMO_MODEL_SETTINGS, loadDemoModelConfig } from "../../apps/demo-model/src/config.ts";
import { GATEWAY_SETTINGS, keyVariables, loadGatewayConfig } from "../../apps/gateway/src/config.ts";
import { loadProxyConfig, PROXY_SETTINGS } from "../../apps/proxy/src/config.ts";
import { loadWorkerConfig, WORKER_SETTINGS } from "../../apps/worker/src/config.ts";
import { homeRemarks } from "../environment.ts";
import { proxySettings } from "./app-settings.ts";
import { PartError } from "./part-error.ts";

const SETTINGS = [
  AD_SERVER_SETTINGS,
  DEMO_MODEL_SETTINGS,
  GATEWAY_SETTINGS,
  PROXY_SETTINGS,
  WORKER_SETTINGS,
].flatMap((shape) => Object.keys(shape));
/** Other names that may be in `.env`: those that docker-compose.yml reads, and the proxies' in lower case. */
const OTHER_NAMES = ["GRAFANA_ADMIN_PASSWORD", "GRAFANA_PORT", "PROMETHEUS_PORT"];
const OTHER_PREFIXES = /^(ADRELAY|OTEL|NODE|COMPOSE|DOCKER)_/;

/**
 * Reads `.env`, if there is one. As with node and docker compose, a variable that is set already stays as it is. Returns what
 * the user should know. Throws a PartError if the file can't be read, or if other programs would read it differently.
 */
export function loadEnvFile(file: string, env: NodeJS.ProcessEnv): string[] {
  const read = existsSync(file) ? readEnvFile(file, ".env") : ({ kind: "ok", values: {} } as const);
  if (read.kind === "faulty") {
    throw new PartError(read.faults.map(({ path, message }) => `${path}: ${message}`).join("\n"));
  }
  const remarks = homeRemarks(file, env);
  const fromShell = Object.keys(env);
  for (const [name, value] of Object.entries(read.values)) {
    env[name] ??= value;
  }
  const variables = keyVariables(env);
  const known = new Set([
    ...SETTINGS,
    ...SETTINGS.map((name) => name.toLowerCase()),
    ...OTHER_NAMES,
    ...variables,
  ]);
  const unknown = Object.keys(read.values).filter((name) => !known.has(name) && !OTHER_PREFIXES.test(name));
  const misspelt = misspeltNames([...fromShell, ...unknown], SETTINGS, [...OTHER_NAMES, ...variables]);
  const nearest = new Map(misspelt.map((one) => [one.name, one.nearest]));
  const notSettings = [...new Set([...unknown, ...nearest.keys()])].map((name) => {
    const meant = nearest.get(name);
    const source = unknown.includes(name) ? ".env" : "environment";
    return `${source}: Adrelay has no setting ${name}${meant === undefined ? "" : `: is ${meant} meant?`}`;
  });
  return [...remarks, ...notSettings];
}

/** The faults of all apps' settings, each with the setting's name. */
export function settingFaults(env: NodeJS.ProcessEnv): string[] {
  const results = [
    loadGatewayConfig(env),
    loadWorkerConfig(env),
    loadAdServerConfig(env),
    loadDemoModelConfig(env),
    loadProxyConfig(proxySettings(env)),
  ];
  const faults = results.flatMap((result) => (result.kind === "faulty" ? result.faults : []));
  return [...new Set(faults.map(({ path, message }) => `${path}: ${message}`))];
}

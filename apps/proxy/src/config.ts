import type { FieldFault } from "@adrelay/contract";
import type { ProviderTls, PublisherDirectory } from "@adrelay/provider";
import {
  CALLER_SETTINGS,
  INTAKE_SETTINGS,
  KEY_HEADER_SETTINGS,
  loadModelTls,
  MODEL_SETTINGS,
  openCallers,
  SESSION_SETTINGS,
} from "@adrelay/relay-kit";
import {
  COMMON_SETTINGS,
  durationBetween,
  type Environment,
  loadConfig,
  OPS_SETTINGS,
  PUBLIC_LISTENER_SETTINGS,
  portType,
  redisTargetFaults,
  setting,
  textType,
} from "@adrelay/service-kit";
import { z } from "zod";
import { LIMIT_SETTINGS } from "./limit-settings.ts";
import { TURN_SETTINGS } from "./turns/turn-settings.ts";

const DAY_MS = 86_400_000;
const { KEEP_ALIVE_TIMEOUT_MS, SHUTDOWN_DELAY_MS } = PUBLIC_LISTENER_SETTINGS;

export const PROXY_SETTINGS = {
  ...COMMON_SETTINGS,
  ...CALLER_SETTINGS,
  PROXY_HOST: setting(textType, "127.0.0.1", "Address of the public listener; 0.0.0.0 in a container."),
  PROXY_PORT: setting(portType, "8083", "Port of the public listener."),
  PROXY_OPS_HOST: setting(textType, "127.0.0.1", "Address of the ops listener: metrics, health."),
  PROXY_OPS_PORT: setting(portType, "8084", "Port of the ops listener."),
  ...KEY_HEADER_SETTINGS,
  ...MODEL_SETTINGS,
  PROXY_IDLE_TIMEOUT_MS: setting(
    durationBetween(100, DAY_MS),
    "10m",
    "How long a call may be without a byte from the model, and without the caller sending or taking one. Then it gets 408 or 504, or is cut.",
  ),
  PROXY_DRAIN_MS: setting(
    durationBetween(0, DAY_MS),
    "60s",
    "How long running answers go on after SIGTERM. Then they are cut, and SHUTDOWN_TIMEOUT_MS begins.",
  ),
  ...TURN_SETTINGS,
  ...INTAKE_SETTINGS,
  ...LIMIT_SETTINGS,
  ...SESSION_SETTINGS,
  KEEP_ALIVE_TIMEOUT_MS,
  SHUTDOWN_DELAY_MS,
  ...OPS_SETTINGS,
} as const;

/** Variables that are no settings, but named by one. */
export { keyVariables } from "@adrelay/provider";

type ProxySettings = z.infer<z.ZodObject<typeof PROXY_SETTINGS>>;

export interface ProxyConfig {
  readonly settings: Readonly<ProxySettings>;
  readonly publishers: PublisherDirectory;
  /** The certificates for models' servers: undefined for Node's own CAs, and no client certificate. */
  readonly modelTls: ProviderTls | undefined;
}

export type ProxyConfigResult =
  | { readonly kind: "ok"; readonly config: ProxyConfig }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Reads the proxy's settings and its publishers. All faults are reported together. */
export function loadProxyConfig(env: Environment): ProxyConfigResult {
  const loaded = loadConfig(z.object(PROXY_SETTINGS), env);
  const callers = openCallers(env);
  const choices =
    loaded.kind === "ok" ? [...redisTargetFaults(loaded.config), ...keyHeaderFaults(loaded.config)] : [];
  const tls = loaded.kind === "ok" ? loadModelTls(loaded.config) : NO_TLS;
  const { publishers } = callers;
  if (loaded.kind === "ok" && tls.kind === "ok" && publishers !== undefined && choices.length === 0) {
    return { kind: "ok", config: { settings: loaded.config, publishers, modelTls: tls.tls } };
  }
  return {
    kind: "faulty",
    faults: [
      ...(loaded.kind === "faulty" ? loaded.faults : []),
      ...choices,
      ...(tls.kind === "faulty" ? tls.faults : []),
      ...callers.faults,
    ],
  };
}

const NO_TLS = { kind: "ok", tls: undefined } as const;

/** Headers that models' servers expect their key in. The proxy takes the publisher's key out of what goes upstream. */
export const MODEL_KEY_HEADERS: readonly string[] = ["authorization", "x-api-key", "api-key"];

function keyHeaderFaults({ API_KEY_HEADERS }: Pick<ProxySettings, "API_KEY_HEADERS">): FieldFault[] {
  return API_KEY_HEADERS.filter((name) => MODEL_KEY_HEADERS.includes(name.toLowerCase())).map((name) => ({
    path: "API_KEY_HEADERS",
    message: `must not name ${name}: a model's key is sent there`,
  }));
}

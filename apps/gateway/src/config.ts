import type { FieldFault } from "@adrelay/contract";
import type { PublisherDirectory } from "@adrelay/provider";
import {
  CALLER_SETTINGS,
  INTAKE_SETTINGS,
  KEY_HEADER_SETTINGS,
  MODEL_SETTINGS,
  openCallers,
  SESSION_SETTINGS,
} from "@adrelay/relay-kit";
import {
  COMMON_SETTINGS,
  durationBetween,
  type Environment,
  listType,
  loadConfig,
  OPS_SETTINGS,
  optionalSetting,
  PUBLIC_LISTENER_SETTINGS,
  portType,
  redisTargetFaults,
  setting,
  textType,
  tokenType,
} from "@adrelay/service-kit";
import { z } from "zod";
import { OperatorDirectory } from "./admin/operator-directory.ts";
import { operatorSchema } from "./admin/operators.ts";
import { LIMIT_SETTINGS } from "./limit-settings.ts";

/** The longest wait that a caller may ask for, of an injection and of an acknowledgment. */
export const CALLER_TIMEOUT_MAX_MS = 30_000;

/** Who may use the admin API. */
const ADMIN_SETTINGS = {
  ADMIN_TOKEN: optionalSetting(
    tokenType,
    "Bearer token of the admin API, of the operator `admin`. Without this, ADMIN_TOKENS and OPERATORS_FILE the admin API is off.",
  ),
  ADMIN_TOKENS: optionalSetting(
    listType.pipe(z.array(operatorSchema)),
    "Operators of the admin API who may do everything, each with a token: alice:token1,bob:token2. The audit shows their names.",
  ),
  OPERATORS_FILE: optionalSetting(
    textType,
    "YAML file that lists further operators: name, token_sha256, role (view or operate), and optionally publishers and expires. See docs/operators.example.yaml.",
  ),
} as const;

export const GATEWAY_SETTINGS = {
  ...COMMON_SETTINGS,
  ...CALLER_SETTINGS,
  GATEWAY_HOST: setting(textType, "127.0.0.1", "Address of the public listener; 0.0.0.0 in a container."),
  GATEWAY_PORT: setting(portType, "8080", "Port of the public listener."),
  GATEWAY_OPS_HOST: setting(
    textType,
    "127.0.0.1",
    "Address of the ops listener: metrics, health, admin API.",
  ),
  GATEWAY_OPS_PORT: setting(portType, "8081", "Port of the ops listener."),
  ...KEY_HEADER_SETTINGS,
  ...MODEL_SETTINGS,
  INJECTION_TIMEOUT_MS: setting(
    durationBetween(1, CALLER_TIMEOUT_MAX_MS),
    "2000",
    "Time limit of an injection, unless the caller sets one with X-Adrelay-Timeout-Ms.",
  ),
  INJECTION_FALLBACK: setting(
    z.enum(["no_fill", "error"]),
    "no_fill",
    "What a caller gets when the ad service fails: no_fill is a 202, error is a 502 or 504.",
  ),
  ACK_WAIT_MS: setting(
    durationBetween(0, CALLER_TIMEOUT_MAX_MS),
    "1000",
    "How long an acknowledgment waits for its outcome, unless the caller says so with Prefer.",
  ),
  ...INTAKE_SETTINGS,
  ...LIMIT_SETTINGS,
  ...SESSION_SETTINGS,
  ...PUBLIC_LISTENER_SETTINGS,
  ...OPS_SETTINGS,
  ...ADMIN_SETTINGS,
} as const;

/** Variables that are no settings, but named by one. */
export { keyVariables } from "@adrelay/provider";

type GatewaySettings = z.infer<z.ZodObject<typeof GATEWAY_SETTINGS>>;

export interface GatewayConfig {
  readonly settings: Readonly<GatewaySettings>;
  readonly publishers: PublisherDirectory;
  /** Who may use the admin API. It is off if the settings name neither an operator nor a file. */
  readonly operators: OperatorDirectory;
}

export type GatewayConfigResult =
  | { readonly kind: "ok"; readonly config: GatewayConfig }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Reads the gateway's settings and its publishers. All faults are reported together. */
export function loadGatewayConfig(env: Environment): GatewayConfigResult {
  const loaded = loadConfig(z.object(GATEWAY_SETTINGS), env);
  const callers = openCallers(env);
  const admins = loadConfig(z.object(ADMIN_SETTINGS), env);
  const operators = new OperatorDirectory(admins.kind === "ok" ? admins.config : {});
  const read = operators.load();
  const choices = [
    ...(loaded.kind === "ok" ? redisTargetFaults(loaded.config) : []),
    ...(read.kind === "faulty" ? read.faults : []),
  ];
  const { publishers } = callers;
  if (loaded.kind === "ok" && publishers !== undefined && choices.length === 0) {
    return { kind: "ok", config: { settings: loaded.config, publishers, operators } };
  }
  return {
    kind: "faulty",
    faults: [...(loaded.kind === "faulty" ? loaded.faults : []), ...choices, ...callers.faults],
  };
}

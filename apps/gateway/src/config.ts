import { API_KEY_HEADER, type FieldFault, headerNameSchema, ownKeySchema } from "@adrelay/contract";
import { UNKNOWN_ACK } from "@adrelay/core";
import { openDirectory, type PublisherDirectory, publisherSources } from "@adrelay/provider";
import {
  COMMON_SETTINGS,
  durationBetween,
  type Environment,
  listType,
  loadConfig,
  OPS_SETTINGS,
  optionalSetting,
  PROVIDER_SETTINGS,
  PUBLIC_LISTENER_SETTINGS,
  portType,
  redisTargetFaults,
  setting,
  textType,
  tokenType,
} from "@adrelay/service-kit";
import { z } from "zod";
import { loadOperators, type Operator, operatorSchema } from "./admin/operators.ts";
import { LIMIT_SETTINGS } from "./admission/limit-settings.ts";
import { QUOTA_SETTINGS } from "./quota-settings.ts";

/** The longest wait that a caller may ask for, of an injection and of an acknowledgment. */
export const CALLER_TIMEOUT_MAX_MS = 30_000;

/** Who may call, and with which provider. */
const CALLER_SETTINGS = {
  ...PROVIDER_SETTINGS,
  API_KEYS: optionalSetting(
    listType.pipe(z.array(ownKeySchema)),
    "Callers' keys, separated by commas, of the one publisher `default`. Either this or PUBLISHERS_FILE.",
  ),
} as const;

/** A session's id may be short. So its hash tells something to whoever can guess the key. */
const SESSION_HASH_KEY_CHARS_MIN = 32;
const sessionHashKeyType = tokenType.refine(
  (key) => key.length >= SESSION_HASH_KEY_CHARS_MIN,
  `must have keys of at least ${SESSION_HASH_KEY_CHARS_MIN} characters`,
);

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
  API_KEY_HEADERS: setting(
    listType.pipe(z.array(headerNameSchema).min(1, "must name at least one header")),
    API_KEY_HEADER,
    "Headers that may contain a caller's key, in this order.",
  ),
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
  ACK_DEADLINE_MS: setting(
    durationBetween(1, 31 * 86_400_000),
    "900000",
    "An ad response that is not acknowledged within this time counts as missed.",
  ),
  UNKNOWN_ACK: setting(
    z.enum(UNKNOWN_ACK),
    "accept",
    "Acknowledgments of unknown ids: accept forwards them, so that the relay can be put before running traffic; reject answers 404. PUBLISHERS_FILE may name another for a publisher.",
  ),
  ...QUOTA_SETTINGS,
  ...LIMIT_SETTINGS,
  SESSION_HASH_KEYS: optionalSetting(
    listType.pipe(z.array(sessionHashKeyType).min(1, "must have at least one key")),
    "Secrets of this installation, separated by commas, under which entries keep a hash of their session, so that all of a session can be erased. The first one is used for new entries; older ones only find. Without this, erasures need ad_response_ids.",
  ),
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
  /** Who may use the admin API. It is off if this is empty. */
  readonly operators: readonly Operator[];
}

export type GatewayConfigResult =
  | { readonly kind: "ok"; readonly config: GatewayConfig }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Reads the gateway's settings and its publishers. All faults are reported together. */
export function loadGatewayConfig(env: Environment): GatewayConfigResult {
  const loaded = loadConfig(z.object(GATEWAY_SETTINGS), env);
  const callers = loadConfig(z.object(CALLER_SETTINGS), env);
  // `loaded` reports the faults of these settings too.
  const publishers =
    callers.kind === "ok"
      ? openDirectory(publisherSources(callers.config, callers.config.API_KEYS ?? [], env))
      : ({ kind: "faulty", faults: [] } as const);
  const admins = loadConfig(z.object(ADMIN_SETTINGS), env);
  const admin = admins.kind === "ok" ? loadOperators(admins.config) : { operators: [], faults: [] };
  const choices = [
    ...(loaded.kind === "ok" ? redisTargetFaults(loaded.config) : []),
    ...(callers.kind === "ok" ? faultyKeyChoice(callers.config) : []),
    ...admin.faults,
  ];
  if (loaded.kind === "ok" && publishers.kind === "ok" && choices.length === 0) {
    const { directory } = publishers;
    return {
      kind: "ok",
      config: { settings: loaded.config, publishers: directory, operators: admin.operators },
    };
  }
  return {
    kind: "faulty",
    faults: [
      ...(loaded.kind === "faulty" ? loaded.faults : []),
      ...choices,
      ...(publishers.kind === "faulty" ? publishers.faults : []),
    ],
  };
}

function faultyKeyChoice({
  API_KEYS,
  PUBLISHERS_FILE,
}: z.infer<z.ZodObject<typeof CALLER_SETTINGS>>): FieldFault[] {
  const hasKeys = API_KEYS !== undefined && API_KEYS.length > 0;
  return hasKeys === (PUBLISHERS_FILE !== undefined)
    ? [{ path: "API_KEYS", message: "set either API_KEYS or PUBLISHERS_FILE" }]
    : [];
}

import { fileURLToPath } from "node:url";
import { type FieldFault, ownKeySchema } from "@adrelay/contract";
import {
  COMMON_SETTINGS,
  type ConfigResult,
  daysBetween,
  durationType,
  type Environment,
  integerType,
  listType,
  loadConfig,
  OPS_SETTINGS,
  optionalSetting,
  PUBLIC_LISTENER_SETTINGS,
  portType,
  redisTargetFaults,
  redisTargetOf,
  setting,
  textType,
} from "@adrelay/service-kit";
import { z } from "zod";
import { type Ad, BID_CPM_MICROS_MAX } from "./catalog/ad.ts";
import { type CatalogFault, describeFault } from "./catalog/catalog-places.ts";
import { stateAtStart } from "./catalog/file-state.ts";
import { loadCatalog } from "./catalog/load-catalog.ts";
import { parseFaultRules } from "./faults/fault-rules.ts";
import { PACING_MODES } from "./money/auction.ts";
import { RESPONSE_LIFETIME_MS } from "./store/response-store.ts";

/** The catalogue that comes with the ad server. */
export const SHIPPED_CATALOG_FILE = fileURLToPath(new URL("../catalog/catalog.yaml", import.meta.url));

/** The keys of each publisher: `a,b|c` are two publishers, and the second has two keys. */
const keysType = listType
  .transform((publishers) => publishers.map((keys) => keys.split("|").map((key) => key.trim())))
  .pipe(z.array(z.array(ownKeySchema)).min(1, "must hold at least one key"))
  .refine(
    (publishers) => publishers.every((keys) => publishers.every((others) => !isOneKeyOfTwo(keys, others))),
    "must not have a key of two publishers",
  );

/** The same key twice is one publisher, unless one of them has another first key, which names it. */
function isOneKeyOfTwo(keys: readonly string[], others: readonly string[]): boolean {
  return keys[0] !== others[0] && keys.some((key) => others.includes(key));
}

const faultsType = z.string().transform((text, context) => {
  const parsed = parseFaultRules(text);
  if (parsed.kind === "ok") {
    return parsed.rules;
  }
  for (const message of parsed.faults) {
    context.addIssue({ code: "custom", message });
  }
  return z.NEVER;
});

const ackWindowType = durationType.pipe(
  z.number().max(RESPONSE_LIFETIME_MS, "must be at most 30d: after that the response is forgotten"),
);

/** The linter of catalogues uses it too. */
export const FLOOR_CPM_MICROS_SETTING = setting(
  integerType(1, BID_CPM_MICROS_MAX),
  "100000",
  "Least price of a thousand impressions, in micros. Ads that bid less aren't shown.",
);

/** Every setting of the ad server, by the name of its environment variable. */
export const AD_SERVER_SETTINGS = {
  AD_SERVER_HOST: setting(textType, "127.0.0.1", "Address that the ad server listens on."),
  AD_SERVER_PORT: setting(portType, "8090", "Port of the ad server; 0 lets the system choose."),
  AD_SERVER_OPS_HOST: setting(
    textType,
    "127.0.0.1",
    "Address of the ad server's ops listener: metrics, health.",
  ),
  AD_SERVER_OPS_PORT: setting(portType, "8091", "Port of the ad server's ops listener."),
  AD_SERVER_API_KEYS: z
    .string({ error: "must be set to the keys that may call, separated by commas" })
    .pipe(keysType)
    .meta({
      description:
        "Keys that may call the ad server, separated by commas. Each is a publisher. Several keys of one publisher: first|second; the first names it. Required.",
    }),
  AD_SERVER_REVOKED_KEYS: optionalSetting(
    listType,
    "Keys that may no longer call, separated by commas. They get 403; unknown keys get 401.",
  ),
  AD_SERVER_CALLS_IN_FLIGHT: setting(
    integerType(1, 1_000_000),
    "1500",
    "How many injections and acknowledgments the ad server works on at the same time. Others get 503. One publisher can have two thirds.",
  ),
  AD_SERVER_CONNECTIONS: setting(
    integerType(10, 1_000_000),
    "3000",
    "How many connections the ad server may have. Beyond them, those without a request are closed.",
  ),
  RATE_LIMIT_PER_SECOND: setting(
    integerType(0, 1_000_000),
    "0",
    "Calls per second that a publisher may make of each operation, over all processes; 0 is no limit.",
  ),
  RATE_LIMIT_BURST: setting(
    integerType(0, 1_000_000),
    "0",
    "Calls that a publisher may make beyond RATE_LIMIT_PER_SECOND in any ten seconds.",
  ),
  CATALOG_FILE: optionalSetting(textType, "YAML file of ads. Default: the shipped catalogue."),
  CATALOG_RELOAD_INTERVAL: setting(
    durationType,
    "250ms",
    "How often the ad server checks whether its catalogue file has changed. The second check that finds the same change loads it.",
  ),
  FLOOR_CPM_MICROS: FLOOR_CPM_MICROS_SETTING,
  PACING: setting(
    z.enum(PACING_MODES),
    "even",
    "even: an ad's budget is spread over its flight; asap: it is sold as fast as prompts come.",
  ),
  PACING_DAYS: setting(
    daysBetween(1, 3650),
    "30",
    "Days over which the budget of an ad without an end is spread.",
  ),
  ACK_WINDOW: setting(
    ackWindowType,
    "4d",
    "How long an injection's price stays reserved for its acknowledgment. It should be longer than a relay retries.",
  ),
  AD_SERVER_REPORT_KEY: optionalSetting(
    ownKeySchema,
    "Key of the operator, for reports on all publishers. Without it, only publishers can read reports, on themselves.",
  ),
  AD_SERVER_FAULTS: optionalSetting(
    faultsType,
    "Faults to inject on purpose, for tests: see apps/ad-server/README.md. Off by default.",
  ),
  ...PUBLIC_LISTENER_SETTINGS,
  ...OPS_SETTINGS,
  ...COMMON_SETTINGS,
} as const;

const adServerConfigSchema = z
  .object(AD_SERVER_SETTINGS)
  .refine(
    (settings) => [settings.AD_SERVER_API_KEYS].flat(2).every((key) => key !== settings.AD_SERVER_REPORT_KEY),
    {
      path: ["AD_SERVER_REPORT_KEY"],
      message: "must not be a publisher's key",
    },
  )
  .superRefine((settings, context) => {
    for (const { path, message } of redisTargetFaults(settings)) {
      context.addIssue({ code: "custom", path: [path], message });
    }
  })
  .transform((settings) => ({
    host: settings.AD_SERVER_HOST,
    port: settings.AD_SERVER_PORT,
    opsHost: settings.AD_SERVER_OPS_HOST,
    opsPort: settings.AD_SERVER_OPS_PORT,
    opsAccess: {
      OPS_HOSTS: settings.OPS_HOSTS,
      OPS_TRUSTED_PROXIES: settings.OPS_TRUSTED_PROXIES,
      METRICS_TOKEN: settings.METRICS_TOKEN,
    },
    apiKeys: settings.AD_SERVER_API_KEYS,
    revokedKeys: settings.AD_SERVER_REVOKED_KEYS ?? [],
    callsMax: settings.AD_SERVER_CALLS_IN_FLIGHT,
    connectionsMax: settings.AD_SERVER_CONNECTIONS,
    rateLimits: { perSecond: settings.RATE_LIMIT_PER_SECOND, burst: settings.RATE_LIMIT_BURST },
    catalogReloadIntervalMs: settings.CATALOG_RELOAD_INTERVAL,
    reportKeys: settings.AD_SERVER_REPORT_KEY === undefined ? [] : [[settings.AD_SERVER_REPORT_KEY]],
    floorCpmMicros: settings.FLOOR_CPM_MICROS,
    pacing: { mode: settings.PACING, days: settings.PACING_DAYS },
    ackWindowMs: settings.ACK_WINDOW,
    faultRules: settings.AD_SERVER_FAULTS ?? [],
    redis: redisTargetOf(settings),
    redisDurability: settings.REDIS_DURABILITY,
    logLevel: settings.LOG_LEVEL,
    bodyBytesMax: settings.BODY_LIMIT_BYTES,
    keepAliveTimeoutMs: settings.KEEP_ALIVE_TIMEOUT_MS,
    shutdownDelayMs: settings.SHUTDOWN_DELAY_MS,
    shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
  }));

export interface AdServerConfig extends Readonly<z.infer<typeof adServerConfigSchema>> {
  readonly catalogFile: string;
  /** The file's state before it was read. */
  readonly catalogState: string;
  readonly ads: readonly Ad[];
}

/** Reads the settings and the catalogue that they name. It returns the faults of both together. */
export function loadAdServerConfig(env: Environment): ConfigResult<AdServerConfig> {
  const settings = loadConfig(adServerConfigSchema, env);
  const catalogFile = env["CATALOG_FILE"]?.trim() || SHIPPED_CATALOG_FILE;
  const catalogState = stateAtStart(catalogFile);
  const catalog = loadCatalog(catalogFile);
  if (settings.kind === "ok" && catalog.kind === "ok") {
    return { kind: "ok", config: { ...settings.config, catalogFile, catalogState, ads: catalog.ads } };
  }
  return {
    kind: "faulty",
    faults: [
      ...(settings.kind === "faulty" ? settings.faults : []),
      ...(catalog.kind === "faulty" ? firstFaults(catalog.faults) : []),
    ],
  };
}

/** A catalogue can have as many faults as lines. */
const CATALOG_FAULTS_MAX = 50;

function firstFaults(faults: readonly CatalogFault[]): FieldFault[] {
  const left = faults.length - CATALOG_FAULTS_MAX;
  const rest = { path: "CATALOG_FILE", message: `has ${left} more faults: see npm run catalog -- lint` };
  const first = faults
    .slice(0, CATALOG_FAULTS_MAX)
    .map((fault) => ({ path: fault.path, message: describeFault(fault) }));
  return [...first, ...(left > 0 ? [rest] : [])];
}

/**
 * Settings: how one is declared, how all of a process are read, and how `.env.example` is written from them.
 *
 * A process reads its environment once, at start, and passes the values on. No other code reads the environment.
 */
import { isIP } from "node:net";
import {
  baseUrlSchema,
  type FieldFault,
  faultsOf,
  headerKeySchema,
  headerNameSchema,
  isQuoted,
  strongTextSchema,
  URL_USER_FAULT,
  urlFault,
} from "@adrelay/contract";
import { z } from "zod";
import { durationBetween, durationType } from "./durations.ts";
import { LOG_LEVELS } from "./logger.ts";
import { DURABILITY_MODES } from "./redis-durability.ts";
import { certificatesFileType, keyFileType } from "./redis-target.ts";
import { sizeBetween } from "./sizes.ts";

/** What `.env.example` shows for a setting. */
interface SettingMeta {
  readonly description: string;
  /** The default as text, as it would be written in the environment; absent if the setting has no default. */
  readonly example?: string;
}

/** Some programs keep the quotes of a file as a part of the value. No setting has quotes at both ends. */
const unquotedType = z
  .string()
  .refine((text) => !isQuoted(text), "must not be in quotes: write the value without them");

/** Declares a setting with a default. The default goes through the same parser as a value that is set. */
export function setting<T extends z.ZodType<unknown, string>>(
  type: T,
  fallback: string,
  description: string,
) {
  return z
    .string()
    .prefault(fallback)
    .pipe(unquotedType)
    .pipe(type)
    .meta({ description, example: fallback } satisfies SettingMeta);
}

/** Declares a setting without a default: its value is undefined unless the variable is set. */
export function optionalSetting<T extends z.ZodType<unknown, string>>(type: T, description: string) {
  return unquotedType
    .pipe(type)
    .optional()
    .meta({ description } satisfies SettingMeta);
}

/** A text that is not empty. */
export const textType = z.string().min(1);

/** A secret that is sent to us in a header. */
export const tokenType = z
  .string()
  .regex(/^[\x20-\x7e]+$/, "must be printable ASCII, in one line")
  .pipe(strongTextSchema);

const REDIS = /^rediss?$/;
const redisUrlType = z
  .url({ protocol: REDIS, error: urlFault(REDIS, "must be a redis:// or rediss:// URL"), abort: true })
  .refine(isReadableRedisUrl, `${URL_USER_FAULT}, and no path but the number of a database`);

/** An unescaped `#`, `/` or `?` in a password moves the host's place. Then what is behind the host looks wrong. */
function isReadableRedisUrl(text: string): boolean {
  const { username, password, pathname, search, hash } = new URL(text);
  try {
    decodeURIComponent(username + password);
  } catch {
    return false;
  }
  return /^(\/\d*)?$/.test(pathname) && !search.includes("@") && hash === "";
}

/** A whole number between two bounds, both included. */
export function integerType(min: number, max: number) {
  return z
    .string()
    .regex(/^\d+$/, "must be a whole number")
    .transform(Number)
    .pipe(z.number().min(min, `must be at least ${min}`).max(max, `must be at most ${max}`));
}

/** A TCP port; with 0 the operating system chooses a free one. */
export const portType = integerType(0, 65_535);

/** Values separated by commas. Blanks around a value and empty values are dropped. */
export const listType = unquotedType.transform((text) =>
  text
    .split(",")
    .map((part) => part.trim())
    .filter((part) => part !== ""),
);

/** The URL of a proxy. Without a scheme, as curl allows it, it is http://. */
const proxyUrlType = z
  .string()
  .transform((text) => (/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`))
  .pipe(baseUrlSchema);

/** NO_PROXY has commas or blanks between its entries. */
const proxyExemptionsType = z
  .string()
  .transform((text) => text.split(/[\s,]+/).filter((part) => part !== ""));

/** Time spans separated by commas, as milliseconds; at least one. */
export const durationListType = listType.pipe(
  z.array(durationType).min(1, "must contain at least one time span"),
);

/** A host's name without its port. */
const hostNameType = z
  .string()
  .regex(/^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$/, "must be a host's name, without a port");

const addressBlockType = z.string().refine((text) => {
  const [address = "", bits, ...rest] = text.split("/");
  const bitsMax = { 0: -1, 4: 32, 6: 128 }[isIP(address)] ?? -1;
  return (
    rest.length === 0 &&
    bitsMax > 0 &&
    (bits === undefined || (/^\d+$/.test(bits) && Number(bits) <= bitsMax))
  );
}, "must be an IP address, or a block such as 10.0.0.0/8");

/** The settings of every process that uses Redis. */
export const COMMON_SETTINGS = {
  REDIS_URL: setting(
    redisUrlType,
    "redis://127.0.0.1:6379",
    "URL of the Redis server: redis:// or, with TLS, rediss://USER:PASSWORD@HOST:PORT/DATABASE. User and password in percent-encoding: % is %25, # is %23, / is %2F, ? is %3F, @ is %40.",
  ),
  REDIS_TLS_CA_FILE: optionalSetting(
    certificatesFileType,
    "PEM file of the authorities that may sign Redis' certificate, in place of the well-known ones. For rediss:// URLs.",
  ),
  REDIS_TLS_CERT_FILE: optionalSetting(
    certificatesFileType,
    "PEM file of the certificate that we show to Redis, with its chain.",
  ),
  REDIS_TLS_KEY_FILE: optionalSetting(
    keyFileType,
    "PEM file of the private key of that certificate, without passphrase.",
  ),
  REDIS_TLS_SERVERNAME: optionalSetting(
    textType,
    "The name in Redis' certificate, if it isn't the host of REDIS_URL.",
  ),
  REDIS_DURABILITY: setting(
    z.enum(DURABILITY_MODES),
    "require",
    "require: refuse a Redis without AOF or with an eviction policy; strict: also require appendfsync always; warn: only log a warning.",
  ),
  LOG_LEVEL: setting(
    z.enum(LOG_LEVELS),
    "info",
    `Lowest level of the log lines that are written: ${LOG_LEVELS.join(", ")}.`,
  ),
  SHUTDOWN_TIMEOUT_MS: setting(durationBetween(100, 600_000), "25000", "Time limit for a graceful shutdown."),
} as const;

/** The settings of every ops listener: who may use it. */
export const OPS_SETTINGS = {
  OPS_HOSTS: optionalSetting(
    listType.pipe(z.array(hostNameType)),
    "Names by which ops listeners may be called, separated by commas, besides localhost, IP addresses and the name that they listen on. Without the port.",
  ),
  OPS_TRUSTED_PROXIES: optionalSetting(
    listType.pipe(z.array(addressBlockType)),
    "Addresses or blocks (10.0.0.0/8) of the proxies before the ops listeners. Their X-Forwarded-For is believed; without this, refused tokens behind one proxy count as from one address.",
  ),
  METRICS_TOKEN: optionalSetting(
    tokenType,
    "Bearer token that /metrics needs. Without it, whoever reaches an ops listener can read the metrics, which name all publishers.",
  ),
} as const;

/** The settings of the processes that callers reach: the gateway and the ad server. */
export const PUBLIC_LISTENER_SETTINGS = {
  BODY_LIMIT_BYTES: setting(
    sizeBetween(1, 64 * 1024 * 1024),
    "1048576",
    "Largest body that a caller may send, counted without the escapes of JSON. With them it may be six times as long.",
  ),
  KEEP_ALIVE_TIMEOUT_MS: setting(
    durationBetween(1000, 3_600_000),
    "75000",
    "How long an idle connection is kept. It must be longer than the balancer in front keeps one.",
  ),
  SHUTDOWN_DELAY_MS: setting(
    durationBetween(0, 600_000),
    "0",
    "How long requests are served after SIGTERM while readiness fails; then SHUTDOWN_TIMEOUT_MS begins.",
  ),
} as const;

/** The settings that the gateway and the worker share: how to reach providers, and how long entries are kept. */
export const PROVIDER_SETTINGS = {
  PROVIDER_URL: setting(
    baseUrlSchema,
    "http://127.0.0.1:8090",
    "Base URL of the ad service. A user and password in it are sent as Basic authentication.",
  ),
  PROVIDER_API_KEY: optionalSetting(
    headerKeySchema,
    "Our API key at the ad service. Required unless every publisher names its own.",
  ),
  PROVIDER_API_KEY_FILE: optionalSetting(
    textType,
    "File with that key, in place of PROVIDER_API_KEY. The file is watched: a new key is used at once.",
  ),
  PROVIDER_API_KEY_HEADER: setting(
    headerNameSchema,
    "X-Service-API-Key",
    "Name of the header that carries our API key to the ad service.",
  ),
  PUBLISHERS_FILE: optionalSetting(
    textType,
    "YAML file that lists the publishers with their keys and, optionally, a provider each. The file is watched. See docs/publishers.example.yaml.",
  ),
  PROVIDER_CA_FILE: optionalSetting(
    textType,
    "PEM file of the authorities that may sign the ad service's certificate, in place of the well-known ones.",
  ),
  PROVIDER_CLIENT_CERT_FILE: optionalSetting(
    textType,
    "PEM file of the certificate that we show to the ad service, with its chain.",
  ),
  PROVIDER_CLIENT_KEY_FILE: optionalSetting(
    textType,
    "PEM file of the private key of that certificate, without passphrase.",
  ),
  HTTP_PROXY: optionalSetting(
    proxyUrlType,
    "Proxy to ad services with http:// URLs. May contain user:password@. Also read as http_proxy.",
  ),
  HTTPS_PROXY: optionalSetting(
    proxyUrlType,
    "Proxy to ad services with https:// URLs, which are tunnelled. Also read as https_proxy.",
  ),
  NO_PROXY: optionalSetting(
    proxyExemptionsType,
    "Hosts that are called without a proxy: names (also of their subdomains), addresses, blocks such as 10.0.0.0/8, or *. Also read as no_proxy.",
  ),
  RECORD_RETENTION: setting(
    durationType,
    "30d",
    "How long the entry of an ad response is kept after it has ended, unless DELIVERED_RETENTION says otherwise.",
  ),
  DELIVERED_RETENTION: setting(
    durationType,
    "3d",
    "How long the entry of a delivered acknowledgment, and of an injection without an ad, is kept.",
  ),
  METRICS_PUBLISHERS_MAX: setting(
    integerType(1, 2000),
    "500",
    "How many publishers and provider accounts have their own series in the metrics: if there are more, those active within the last day. All others share `other`.",
  ),
} as const;

/** Environment variables by name. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** The settings of a process, or everything that is wrong with them. */
export type ConfigResult<T> =
  | { readonly kind: "ok"; readonly config: Readonly<T> }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** These names are also read in lower case, which comes first: other programs do the same. */
const PROXY_NAMES = ["HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY"];

/** The environment without blanks and line breaks around values: the file of a secret often ends with a line break. */
export function trimmed(env: Environment): Environment {
  return Object.fromEntries(Object.entries(env).map(([name, value]) => [name, value?.trim()]));
}

/**
 * Parses the settings from the environment. A blank variable counts as not set. All faults are reported together,
 * by the variable's name and never by its value: a value can be a secret.
 */
export function loadConfig<T>(schema: z.ZodType<T>, env: Environment): ConfigResult<T> {
  const lowerCase = PROXY_NAMES.map((name) => [name, env[name.toLowerCase()]] as const);
  const isSet = ([, value]: readonly [string, string | undefined]) => (value ?? "").trim() !== "";
  const set = Object.fromEntries([...Object.entries(env), ...lowerCase].filter(isSet));
  const parsed = schema.safeParse(trimmed(set));
  return parsed.success
    ? { kind: "ok", config: Object.freeze(parsed.data) }
    : { kind: "faulty", faults: faultsOf(parsed.error) };
}

/** Writes faults for standard error, one per line. */
export function describeFaults(faults: readonly FieldFault[]): string {
  return faults.map((fault) => `  ${fault.path || "settings"}: ${fault.message}`).join("\n");
}

/** A section of `.env.example`: the settings of one app. */
interface EnvSection {
  readonly title: string;
  readonly shape: z.core.$ZodShape;
}

/**
 * Writes `.env.example` from the schemas that the apps load. A setting that several apps share appears only in the
 * first section.
 *
 * @param metaOf looks up what `setting` and `optionalSetting` have attached to a type
 */
export function renderEnvExample(
  sections: readonly EnvSection[],
  metaOf: (type: z.core.$ZodType) => unknown,
): string {
  const seen = new Set<string>();
  const lines = [
    "# Every setting with its default. Remove the # of a line to change the setting. Time spans are numbers of milliseconds",
    "# or have a unit: 500ms, 30s, 15m, 72h, 30d. Sizes are numbers of bytes or have a unit: 512KB, 64MB, 2GB.",
    "# Put values with # or $ in single quotes.",
    "# Generated from the schemas: edit those, then run `npm run generate`.",
  ];
  for (const { title, shape } of sections) {
    lines.push("", `# --- ${title} ---`);
    for (const [name, type] of Object.entries(shape)) {
      if (!seen.has(name)) {
        seen.add(name);
        const { description, example } = metaSchema.parse(metaOf(type) ?? {});
        lines.push("", `# ${description}`, `#${name}=${example}`);
      }
    }
  }
  return `${lines.join("\n")}\n`;
}

const metaSchema = z.object({
  description: z.string().default("(no description)"),
  example: z.string().default(""),
});

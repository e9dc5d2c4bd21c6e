/** The settings of the processes that callers reach with a publisher's key, and how the publishers are found by them. */
import { API_KEY_HEADER, type FieldFault, headerNameSchema, ownKeySchema } from "@adrelay/contract";
import { UNKNOWN_ACK } from "@adrelay/core";
import { openDirectory, type PublisherDirectory, publisherSources } from "@adrelay/provider";
import {
  durationBetween,
  type Environment,
  listType,
  loadConfig,
  optionalSetting,
  PROVIDER_SETTINGS,
  setting,
  tokenType,
} from "@adrelay/service-kit";
import { z } from "zod";
import { QUOTA_SETTINGS } from "../admission/quota-settings.ts";

/** Who may call, and with which provider. */
export const CALLER_SETTINGS = {
  ...PROVIDER_SETTINGS,
  API_KEYS: optionalSetting(
    listType.pipe(z.array(ownKeySchema)),
    "Callers' keys, separated by commas, of the one publisher `default`. Either this or PUBLISHERS_FILE.",
  ),
} as const;

/** Where a caller's key is sent. */
export const KEY_HEADER_SETTINGS = {
  API_KEY_HEADERS: setting(
    listType.pipe(z.array(headerNameSchema).min(1, "must name at least one header")),
    API_KEY_HEADER,
    "Headers that may contain a caller's key, in this order.",
  ),
} as const;

/** What is accepted, and until when. */
export const INTAKE_SETTINGS = {
  ACK_DEADLINE_MS: setting(
    durationBetween(1, 31 * 86_400_000),
    "900000",
    "An ad response that is not acknowledged within this time counts as missed.",
  ),
  UNKNOWN_ACK: setting(
    z.enum(UNKNOWN_ACK),
    "accept",
    "Acknowledgments of unknown ids: accept forwards them, so that the relay can be put before running traffic; reject answers 404, also for ads that went out untracked while Redis was away. PUBLISHERS_FILE may name another for a publisher.",
  ),
  ...QUOTA_SETTINGS,
} as const;

/** A session's id may be short. So its hash tells something to whoever can guess the key. */
const SESSION_HASH_KEY_CHARS_MIN = 32;
const sessionHashKeyType = tokenType.refine(
  (key) => key.length >= SESSION_HASH_KEY_CHARS_MIN,
  `must have keys of at least ${SESSION_HASH_KEY_CHARS_MIN} characters`,
);

/** How sessions are kept. */
export const SESSION_SETTINGS = {
  SESSION_HASH_KEYS: optionalSetting(
    listType.pipe(z.array(sessionHashKeyType).min(1, "must have at least one key")),
    "Secrets of this installation, separated by commas, under which entries keep a hash of their session, so that all of a session can be erased. The first one is used for new entries; older ones only find. Without this, erasures need ad_response_ids.",
  ),
} as const;

/** The publishers of a process; undefined if its settings or its publishers' file have faults. */
export interface OpenedCallers {
  readonly publishers: PublisherDirectory | undefined;
  /** Those of the publishers. Faults of single settings are reported by whoever loads all settings. */
  readonly faults: readonly FieldFault[];
}

/** Opens the publishers that may call. */
export function openCallers(env: Environment): OpenedCallers {
  const loaded = loadConfig(z.object(CALLER_SETTINGS), env);
  if (loaded.kind === "faulty") {
    return { publishers: undefined, faults: [] };
  }
  const settings = loaded.config;
  const opened = openDirectory(publisherSources(settings, settings.API_KEYS ?? [], env));
  const faults = faultyKeyChoice(settings);
  return opened.kind === "ok"
    ? { publishers: faults.length === 0 ? opened.directory : undefined, faults }
    : { publishers: undefined, faults: [...faults, ...opened.faults] };
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

import { baseUrlSchema, headerKeySchema, headerNameSchema } from "@adrelay/contract";
import { z } from "zod";
import { LOG_LEVELS } from "../logger.ts";
import { DURABILITY_MODES } from "../redis-durability.ts";
import { durationType, integerType, optionalSetting, redisUrlType, setting, textType } from "./settings.ts";

/** What every process with a Redis has. */
export const COMMON_SETTINGS = {
  REDIS_URL: setting(redisUrlType, "redis://127.0.0.1:6379", "Where Redis is."),
  REDIS_DURABILITY: setting(
    z.enum(DURABILITY_MODES),
    "require",
    "require: refuses a Redis without AOF or with an eviction policy; strict: wants appendfsync always too; warn: goes on.",
  ),
  LOG_LEVEL: setting(z.enum(LOG_LEVELS), "info", `Least level of log lines: ${LOG_LEVELS.join(", ")}.`),
  SHUTDOWN_TIMEOUT_MS: setting(integerType(100, 600_000), "25000", "Bound of a stop, in milliseconds."),
} as const;

/** What the gateway and the worker both need to reach providers and to keep records. */
export const PROVIDER_SETTINGS = {
  PROVIDER_URL: setting(baseUrlSchema, "http://127.0.0.1:8090", "Base URL of the ad service."),
  PROVIDER_API_KEY: optionalSetting(
    headerKeySchema,
    "Our key at the ad service. Needed unless every publisher names its own.",
  ),
  PROVIDER_API_KEY_HEADER: setting(headerNameSchema, "X-Service-API-Key", "Header that carries our key."),
  PUBLISHERS_FILE: optionalSetting(
    textType,
    "YAML file of publishers: id, name, key_sha256, and optionally provider url, api_key_env, api_key_header.",
  ),
  RECORD_RETENTION: setting(durationType, "30d", "How long the record of an ended ad response is kept."),
} as const;

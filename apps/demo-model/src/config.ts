import {
  COMMON_SETTINGS,
  type ConfigResult,
  durationBetween,
  type Environment,
  integerType,
  loadConfig,
  portType,
  setting,
  textType,
} from "@adrelay/service-kit";
import { z } from "zod";

/** Every setting of the demo model, by the name of its environment variable. */
export const DEMO_MODEL_SETTINGS = {
  DEMO_MODEL_HOST: setting(textType, "127.0.0.1", "Address that the demo model listens on."),
  DEMO_MODEL_PORT: setting(portType, "8092", "Port of the demo model; 0 lets the system choose."),
  DEMO_MODEL_DELAY_MS: setting(
    durationBetween(0, 60_000),
    "20",
    "Pause between two events of a stream of the demo model.",
  ),
  DEMO_MODEL_RECORDS: setting(
    integerType(0, 100_000),
    "0",
    "How many calls the demo model keeps for GET /demo/calls, with their texts and keys. For tests only.",
  ),
  LOG_LEVEL: COMMON_SETTINGS.LOG_LEVEL,
  SHUTDOWN_TIMEOUT_MS: COMMON_SETTINGS.SHUTDOWN_TIMEOUT_MS,
} as const;

const demoModelConfigSchema = z.object(DEMO_MODEL_SETTINGS).transform((settings) => ({
  host: settings.DEMO_MODEL_HOST,
  port: settings.DEMO_MODEL_PORT,
  delayMs: settings.DEMO_MODEL_DELAY_MS,
  recordsMax: settings.DEMO_MODEL_RECORDS,
  logLevel: settings.LOG_LEVEL,
  shutdownTimeoutMs: settings.SHUTDOWN_TIMEOUT_MS,
}));

export type DemoModelConfig = Readonly<z.infer<typeof demoModelConfigSchema>>;

export function loadDemoModelConfig(env: Environment): ConfigResult<DemoModelConfig> {
  return loadConfig(demoModelConfigSchema, env);
}

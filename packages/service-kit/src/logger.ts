import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Members that hold what a user wrote or a secret, at any of the depths that our lines have (invariant 6). */
const SECRET_MEMBERS = [
  "prompt",
  "enhanced_prompt",
  "llm_response",
  "user_ip",
  "body",
  "apiKey",
  "authorization",
  "headers",
  "token",
];

/** One JSON line an event on standard output: `event` is a fixed name, the rest are fields. */
export function createLogger(service: string, level: LogLevel, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: { service },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      redact: { paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`]), remove: true },
    },
    destination ?? pino.destination({ dest: 1, sync: true }),
  );
}

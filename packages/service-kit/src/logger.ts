import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";
import sonicBoom from "sonic-boom";

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

const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** One JSON line an event on standard output: `event` is a fixed name, the rest are fields. */
export function createLogger(service: string, level: LogLevel, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: { service },
      timestamp: stdTimeFunctions.isoTime,
      formatters: { level: (label) => ({ level: label }) },
      serializers: { err: describeError },
      redact: { paths: SECRET_MEMBERS.flatMap((name) => [name, `*.${name}`]), remove: true },
    },
    destination ?? standardOutput(),
  );
}

/**
 * Not in step with the reader: one that stops reading must not stop us, and what it leaves unread is dropped.
 * One that is gone is no fault of ours either. Pino's own such stream writes its last lines as the process
 * exits, and tries for ever if the reader is gone: here the last lines are flushed by `runService`, bounded.
 */
function standardOutput(): DestinationStream & { flush(done: () => void): void } {
  const stream = new sonicBoom.SonicBoom({ fd: 1, sync: false, maxLength: UNREAD_BYTES_MAX });
  let isGone = false;
  stream.on("error", () => {
    isGone = true;
  });
  return {
    write: (line) => {
      if (!isGone) {
        stream.write(line);
      }
    },
    flush: (done) => {
      if (isGone) {
        done();
      } else {
        stream.flush(() => done());
      }
    },
  };
}

/** What a line may tell of an error: a driver's own fields can hold the command it sent, and with it a text. */
interface ErrorDescription {
  readonly type: string;
  readonly message: string;
  readonly code?: string;
  readonly stack?: string;
  readonly cause?: ErrorDescription;
}

const CAUSES_MAX = 4;

function describeError(error: unknown, depth = 0): ErrorDescription {
  if (!(error instanceof Error)) {
    return { type: typeof error, message: typeof error === "string" ? error : "not an error" };
  }
  return {
    type: error.name,
    message: error.message,
    ...("code" in error && typeof error.code === "string" ? { code: error.code } : {}),
    ...(error.stack === undefined ? {} : { stack: error.stack }),
    ...(error.cause === undefined || depth >= CAUSES_MAX
      ? {}
      : { cause: describeError(error.cause, depth + 1) }),
  };
}

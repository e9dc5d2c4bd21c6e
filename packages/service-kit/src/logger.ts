import { fstatSync } from "node:fs";
import { Socket } from "node:net";
import { type DestinationStream, type Logger, pino, stdTimeFunctions } from "pino";

export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Members that hold what a user wrote or a secret, at any of the depths that our lines have (invariant 6). */
const SECRET_MEMBERS: ReadonlySet<string> = new Set([
  "prompt",
  "enhanced_prompt",
  "llm_response",
  "user_ip",
  "body",
  "apiKey",
  "authorization",
  "headers",
  "token",
]);

/** Where lines have an error; `describeError` tells what may be told of it. */
const ERROR_MEMBER = "err";

const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/** One JSON line an event on standard output: `event` is a fixed name, the rest are fields. */
export function createLogger(service: string, level: LogLevel, destination?: DestinationStream): Logger {
  return pino(
    {
      level,
      base: { service },
      timestamp: stdTimeFunctions.isoTime,
      formatters: {
        level: (label) => ({ level: label }),
        log: withoutSecrets,
      },
      serializers: { [ERROR_MEMBER]: describeError },
    },
    destination ?? standardOutput(),
  );
}

/**
 * Leaves secret members out, also one level down. By hand: pino's own redaction copies every line for its wildcards,
 * which was most of what a line costs. What a child logger is made with is not looked at; we have none.
 */
function withoutSecrets(fields: object): Record<string, unknown> {
  const kept: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(fields)) {
    if (!SECRET_MEMBERS.has(name)) {
      kept[name] = name !== ERROR_MEMBER && hasSecrets(value) ? withoutSecretsOf(value) : value;
    }
  }
  return kept;
}

function hasSecrets(value: unknown): value is object {
  return (
    typeof value === "object" && value !== null && Object.keys(value).some((name) => SECRET_MEMBERS.has(name))
  );
}

function withoutSecretsOf(value: object): object {
  return Object.fromEntries(Object.entries(value).filter(([name]) => !SECRET_MEMBERS.has(name)));
}

/**
 * A pipe is written to without waiting for its reader: one that stops reading must not stop us, and what it
 * leaves unread beyond a bound is dropped; one that is gone is no fault of ours either. Files and terminals
 * take what they get at once. `runService` flushes the last lines, bounded.
 */
function standardOutput(): DestinationStream {
  const output = fstatSync(1);
  return output.isFIFO() || output.isSocket() ? pipedOutput() : pino.destination({ dest: 1, sync: true });
}

function pipedOutput(): DestinationStream & { flush(done: () => void): void } {
  const pipe = new Socket({ fd: 1, readable: false, writable: true });
  let isGone = false;
  pipe.on("error", () => {
    isGone = true;
  });
  return {
    write: (line) => {
      if (!isGone && pipe.writableLength < UNREAD_BYTES_MAX) {
        pipe.write(line);
      }
    },
    flush: (done) => {
      if (isGone) {
        done();
      } else {
        pipe.write("", () => done());
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

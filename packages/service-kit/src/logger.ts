import { fstatSync } from "node:fs";
import { Socket } from "node:net";
import { type DestinationStream, type Logger, pino } from "pino";
import { joinLines, type LineTarget } from "./joined-lines.ts";

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
      timestamp: makeIsoTime(),
      formatters: {
        level: (label) => ({ level: label }),
        log: withoutSecrets,
      },
      serializers: { [ERROR_MEMBER]: describeError },
    },
    destination ?? joinLines(standardOutput()),
  );
}

/** As pino's own, which makes a Date for each line; here all but the milliseconds is made once a second. */
function makeIsoTime(): () => string {
  let second = { number: 0, text: "" };
  return () => {
    const nowMs = Date.now();
    const number = Math.floor(nowMs / 1000);
    if (number !== second.number) {
      second = { number, text: new Date(nowMs).toISOString().slice(0, -"123Z".length) };
    }
    return `,"time":"${second.text}${String(nowMs % 1000).padStart(3, "0")}Z"`;
  };
}

type Fields = Record<string, unknown>;

/**
 * Leaves secret members out, also one level down. By hand: pino's own redaction copies every line for its wildcards,
 * which was most of what a line costs. What a child logger is made with is not looked at; we have none.
 */
function withoutSecrets(fields: Fields): Fields {
  // Almost no line has any, and then it needs no copy.
  for (const name in fields) {
    if (SECRET_MEMBERS.has(name) || hasSecretsBelow(name, fields[name])) {
      return copyWithoutSecrets(fields);
    }
  }
  return fields;
}

function copyWithoutSecrets(fields: Fields): Fields {
  const kept = Object.entries(fields).filter(([name]) => !SECRET_MEMBERS.has(name));
  return Object.fromEntries(
    kept.map(([name, value]) => [name, hasSecretsBelow(name, value) ? withoutSecretsOf(value) : value]),
  );
}

function hasSecretsBelow(name: string, value: unknown): value is object {
  return (
    typeof value === "object" &&
    value !== null &&
    name !== ERROR_MEMBER &&
    Object.keys(value).some((below) => SECRET_MEMBERS.has(below))
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
function standardOutput(): LineTarget {
  const output = fstatSync(1);
  return output.isFIFO() || output.isSocket() ? pipedOutput() : pino.destination({ dest: 1, sync: true });
}

function pipedOutput(): LineTarget {
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

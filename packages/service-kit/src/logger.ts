/**
 * Log lines: one JSON object an event on standard output. `event` is a fixed name; the other members are its fields.
 *
 * This file also keeps secrets out of the lines, and decides how lines reach standard output.
 */
import { fstatSync, writeSync } from "node:fs";
import { Socket } from "node:net";
import { type DestinationStream, type Logger, pino } from "pino";

/** The levels of log lines, highest first. A process writes the lines of its level and above. */
export const LOG_LEVELS = ["fatal", "error", "warn", "info", "debug", "trace", "silent"] as const;
export type LogLevel = (typeof LOG_LEVELS)[number];

/** Members that hold a user's text or a secret (invariant 6), at the top of a line or one level below. */
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

/** The member that holds an error; `describeError` decides what is written of it. */
const ERROR_MEMBER = "err";

/** Makes the logger of a process. Lines go to standard output unless a destination is given. */
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

/** As pino's own timestamp, but without a Date for each line: only the milliseconds are formatted each time. */
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
 * Leaves secret members out. pino's own redaction would copy every line, which is most of what a line costs; here a
 * line is copied only if it has such a member. The fields of a child logger are not checked: we make none.
 */
function withoutSecrets(fields: Fields): Fields {
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

/** What is written of an error. A driver's error can carry the command it sent, and with it a user's text. */
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

/** The stream between a logger and the target of its lines. */
interface JoinedLines extends DestinationStream {
  /** pino sets it before it writes a line. */
  lastLevel: number;
  flush(done: () => void): void;
}

/** Where lines are written. */
interface LineTarget {
  /** Does not wait until the text is written. */
  write(text: string): unknown;
  /** Calls `done` once everything has been written. */
  flush?(done: () => void): void;
}

/** pino's number for the level `warn`. */
const WARN = 40;
const JOINED_CHARS_MAX = 64 * 1024;

/**
 * Joins the lines of one turn of the event loop into one write: under load a turn ends many requests, and a system call
 * for each line would cost more than the line. A line of level `warn` or above and the end of the process write
 * everything immediately. So lines are lost only if the process is killed within a turn.
 */
export function joinLines(target: LineTarget): JoinedLines {
  let joined = "";
  const writeAll = () => {
    const text = joined;
    joined = "";
    if (text !== "") {
      target.write(text);
    }
  };
  let isListening = false;
  const writeAllOnExit = () => {
    isListening = true;
    process.on("exit", writeAll);
  };
  const lines = {
    // By this member pino knows that it must set `lastLevel`.
    [Symbol.for("pino.metadata")]: true,
    lastLevel: 0,
    write: (line: string) => {
      if (!isListening) {
        writeAllOnExit();
      }
      if (joined === "") {
        setImmediate(writeAll);
      }
      joined += line;
      if (lines.lastLevel >= WARN || joined.length > JOINED_CHARS_MAX) {
        writeAll();
      }
    },
    flush: (done: () => void) => {
      writeAll();
      if (target.flush === undefined) {
        done();
      } else {
        target.flush(done);
      }
    },
  };
  return lines;
}

function standardOutput(): LineTarget {
  const output = fstatSync(1);
  return output.isFIFO() || output.isSocket() ? pipedOutput() : fileOutput();
}

const UNREAD_BYTES_MAX = 16 * 1024 * 1024;

/**
 * Files and terminals are written to synchronously. `startService` flushes the last lines, with a time limit. A full disk
 * must not stop this process: lines wait for room, and beyond a bound they are dropped.
 */
function fileOutput(): LineTarget {
  const output = pino.destination({ dest: 1, sync: true, maxLength: UNREAD_BYTES_MAX });
  let isReported = false;
  output.on("error", (error: Error) => {
    if (!isReported) {
      isReported = true;
      reportOnStderr(`the log can't be written: ${error.message}\n`);
    }
  });
  return output;
}

function reportOnStderr(text: string): void {
  try {
    writeSync(2, text);
  } catch {
    // It may be on the same disk.
  }
}

/**
 * A pipe is written to without waiting for its reader, because a reader that stops reading must not stop this process.
 * What the reader leaves unread beyond a bound is dropped. If the reader is gone, all lines are dropped.
 */
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

/** A Redis server's data folder: never used by two servers at the same time. */
import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";

/**
 * port_taken: another program listens there. dir_in_use: a server already runs on that data folder. not_marked: the folder
 * can't be marked as in use.
 */
export type RedisStartErrorCode =
  | "port_taken"
  | "dir_in_use"
  | "ended"
  | "no_answer"
  | "aborted"
  | "not_marked";

/** A server did not start. The message says why and has its last log lines. */
export class RedisStartError extends Error {
  override readonly name = "RedisStartError";
  readonly code: RedisStartErrorCode;

  constructor(code: RedisStartErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

/** The server's own log, in its data folder. */
export const LOG_FILE = "redis.log";
/** Names the server that used the folder last: its port and run id. */
const MARK_FILE = "server.json";
/** If a server's owner was killed, its guardian is stopping the server. We wait that long for its end. */
const LEAVE_TIMEOUT_MS = 3000;
const LOOK_INTERVAL_MS = 50;
const LAST_LINES = 6;

interface Mark {
  readonly port: number;
  readonly runId: string;
}

/**
 * Makes the folder, and refuses a folder that a running server uses: two servers on one append-only file would ruin it.
 * Rejects with a RedisStartError.
 */
export async function prepareFolder(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  const mark = readMark(dir);
  const deadlineMs = performance.now() + LEAVE_TIMEOUT_MS;
  while (mark !== undefined && (await isRunning(mark))) {
    if (performance.now() > deadlineMs) {
      throw new RedisStartError(
        "dir_in_use",
        `the Redis on port ${mark.port} already uses ${dir}; stop the program that runs it first`,
      );
    }
    await new Promise((done) => setTimeout(done, LOOK_INTERVAL_MS));
  }
}

/** Records the server that now uses the folder. Throws a RedisStartError if that can't be written. */
export function markFolder(dir: string, mark: Mark): void {
  try {
    writeFileSync(join(dir, MARK_FILE), `${JSON.stringify(mark)}\n`);
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new RedisStartError(
      "not_marked",
      `Redis was stopped again, because its folder can't be marked: ${why}`,
    );
  }
}

async function isRunning({ port, runId }: Mark): Promise<boolean> {
  const probe = await probeRedis(port);
  return probe.kind === "redis" && probe.runId === runId;
}

function readMark(dir: string): Mark | undefined {
  const text = readText(join(dir, MARK_FILE));
  const port = /"port":(\d+)/.exec(text)?.[1];
  const runId = /"runId":"(\w+)"/.exec(text)?.[1];
  return port === undefined || runId === undefined ? undefined : { port: Number(port), runId };
}

/** The present length of the log. A server that starts now writes behind it. */
export function logSizeBytes(dir: string): number {
  return statSync(join(dir, LOG_FILE), { throwIfNoEntry: false })?.size ?? 0;
}

/** The last lines that were logged after `fromByte`. */
export function lastLogLines(dir: string, fromByte: number): string[] {
  const text = Buffer.from(readText(join(dir, LOG_FILE)), "utf8")
    .subarray(fromByte)
    .toString("utf8");
  return text
    .split("\n")
    .filter((line) => line.trim() !== "")
    .slice(-LAST_LINES);
}

function readText(path: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch {
    return "";
  }
}

/** What answers on a port. */
export type Probe =
  | { readonly kind: "silent" }
  | {
      readonly kind: "redis";
      readonly isLoading: boolean;
      readonly processId: number;
      /** New with every start of a server. */
      readonly runId: string;
    };

const PROBE_TIMEOUT_MS = 500;
/** The two sections of INFO have about 2 KB. A program that writes more than this is no Redis. */
const REPLY_CHARS_MAX = 32 * 1024;

/**
 * Asks the program that listens on a port of 127.0.0.1 who it is. It sends INFO, not PING, for two reasons: INFO names
 * the process, so that another server on the same port is not mistaken for ours; and INFO works while data load.
 */
export function probeRedis(port: number): Promise<Probe> {
  return new Promise((done) => {
    let reply = "";
    const socket = connect({ port, host: "127.0.0.1", timeout: PROBE_TIMEOUT_MS });
    const end = (probe: Probe) => {
      socket.destroy();
      done(probe);
    };
    socket.once("connect", () => socket.write("INFO server\r\nINFO persistence\r\n"));
    socket.setEncoding("utf8").on("data", (text: string) => {
      reply += text;
      const probe = parseInfo(reply);
      if (probe.kind === "redis" || reply.length > REPLY_CHARS_MAX) {
        end(probe);
      }
    });
    for (const event of ["timeout", "error", "close"]) {
      socket.once(event, () => end({ kind: "silent" }));
    }
  });
}

function parseInfo(reply: string): Probe {
  const processId = /\nprocess_id:(\d+)\r/.exec(reply)?.[1];
  const runId = /\nrun_id:(\w+)\r/.exec(reply)?.[1];
  const loading = /\nloading:(\d)\r/.exec(reply)?.[1];
  if (processId === undefined || runId === undefined || loading === undefined) {
    return { kind: "silent" };
  }
  return { kind: "redis", isLoading: loading === "1", processId: Number(processId), runId };
}

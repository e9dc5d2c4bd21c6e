import { mkdirSync, readFileSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { probeRedis } from "./probe.ts";
import { RedisStartError } from "./redis-start-error.ts";
import { LOG_FILE } from "./server-command.ts";

/** Says which server used the folder last: its port and run id. */
const MARK_FILE = "server.json";
/** A server whose owner was killed is being stopped by its guardian: that long is waited for it. */
const LEAVE_TIMEOUT_MS = 3000;
const LOOK_INTERVAL_MS = 50;
const LAST_LINES = 6;

/**
 * Makes the folder, and refuses one that a running server uses: two on the same append-only file would ruin
 * it. Rejects with a RedisStartError.
 */
export async function prepareFolder(dir: string): Promise<void> {
  mkdirSync(dir, { recursive: true });
  const mark = readMark(dir);
  const deadlineMs = performance.now() + LEAVE_TIMEOUT_MS;
  while (mark !== undefined && (await isRunning(mark))) {
    if (performance.now() > deadlineMs) {
      throw new RedisStartError(
        "dir_in_use",
        `the Redis on port ${mark.port} already uses ${dir}; stop what runs it first`,
      );
    }
    await new Promise((done) => setTimeout(done, LOOK_INTERVAL_MS));
  }
}

interface Mark {
  readonly port: number;
  readonly runId: string;
}

/** Leaves word of the server that now uses the folder. */
export function markFolder(dir: string, mark: Mark): void {
  writeFileSync(join(dir, MARK_FILE), `${JSON.stringify(mark)}\n`);
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

/** How long the log is now; what a new server writes comes after it. */
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

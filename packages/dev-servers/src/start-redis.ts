/** Starts a Redis server whose data survive it, and waits until it answers. */
import { randomUUID } from "node:crypto";
import { freePort, isPortFree } from "./ports.ts";
import {
  lastLogLines,
  logSizeBytes,
  markFolder,
  prepareFolder,
  probeRedis,
  RedisStartError,
} from "./redis-data-folder.ts";
import { type RunningRedis, type ServerProcess, spawnServer } from "./redis-process.ts";
import type { RedisServer } from "./redis-server.ts";

export interface StartRedisOptions {
  readonly server: RedisServer;
  /** The folder of its data and its log. They outlive the server. */
  readonly dir: string;
  /** The port to use. Without it a free one is chosen. If another program is faster, the next free one is used. */
  readonly port?: number;
  /** Chooses a free port; the default is `freePort`. */
  readonly choosePort?: () => Promise<number>;
  readonly appendfsync?: "always" | "everysec" | "no";
  readonly extraArgs?: readonly string[];
  readonly log?: (line: string) => void;
  /** Gives up while the server starts. Once it has started, use `stop`. */
  readonly signal?: AbortSignal;
}

const PORT_TRIES = 5;
const ANSWER_TIMEOUT_MS = 10_000;
/** A server that reports that it loads its data is alive, so it may take longer. */
const LOADING_TIMEOUT_MS = 120_000;
const PROBE_INTERVAL_MS = 25;

/**
 * Starts a server on 127.0.0.1 with its append-only file on and without eviction, and waits until it answers with its
 * data loaded. If this process dies, the server is stopped. Rejects with a RedisStartError.
 */
export async function startRedis(options: StartRedisOptions): Promise<RunningRedis> {
  const { dir, port: fixedPort, choosePort = freePort, log } = options;
  await prepareFolder(dir);
  if (fixedPort !== undefined) {
    return launch(options, fixedPort);
  }
  for (let attempt = 1; ; attempt += 1) {
    const port = await choosePort();
    try {
      return await launch(options, port);
    } catch (error) {
      // Another program may have taken the port after our check.
      const isTaken = error instanceof RedisStartError && error.code === "port_taken";
      if (!isTaken || attempt === PORT_TRIES) {
        throw error;
      }
      log?.(`another program now uses port ${port}: trying another port`);
    }
  }
}

async function launch(options: StartRedisOptions, port: number): Promise<RunningRedis> {
  const { server, dir, appendfsync = "always", extraArgs = [], log = () => {}, signal } = options;
  if (!(await isPortFree(port))) {
    throw portTaken(port);
  }
  const logFrom = logSizeBytes(dir);
  const container = `adrelay-redis-${randomUUID()}`;
  const process = spawnServer({ server, dir, port, appendfsync, extraArgs, container }, log);
  const outcome = await waitUntilReady(process, { port, server, signal });
  if (outcome.kind === "ready") {
    try {
      markFolder(dir, { port, runId: outcome.runId });
    } catch (error) {
      await process.stop();
      throw error;
    }
    const { pid, exited, kill, stop } = process;
    return { url: `redis://127.0.0.1:${port}`, port, pid, exited, kill, stop };
  }
  await process.stop();
  if (outcome.kind === "ended" && !(await isPortFree(port))) {
    throw portTaken(port);
  }
  const lines = [`Redis did not start on port ${port}: ${REASONS[outcome.kind]}`];
  throw new RedisStartError(
    outcome.kind,
    [...lines, ...(await process.lastWords()), ...lastLogLines(dir, logFrom)].join("\n"),
  );
}

const REASONS = {
  ended: "it ended before it was ready",
  no_answer: "it did not answer in time",
  aborted: "the start was aborted",
};

function portTaken(port: number): RedisStartError {
  return new RedisStartError(
    "port_taken",
    `Redis can't start on port ${port}: another program listens on it`,
  );
}

type Outcome =
  | { readonly kind: "ready"; readonly runId: string }
  | { readonly kind: "ended" | "no_answer" | "aborted" };

interface Wait {
  readonly port: number;
  readonly server: RedisServer;
  readonly signal: AbortSignal | undefined;
}

async function waitUntilReady(process: ServerProcess, { port, server, signal }: Wait): Promise<Outcome> {
  let hasEnded = false;
  process.exited.then(() => {
    hasEnded = true;
  });
  const startedMs = performance.now();
  let boundMs = ANSWER_TIMEOUT_MS;
  while (performance.now() - startedMs < boundMs) {
    if (hasEnded || signal?.aborted) {
      return { kind: hasEnded ? "ended" : "aborted" };
    }
    const probe = await probeRedis(port);
    // In a container the process has another number. There Docker refuses a port that is in use.
    const isOurs = probe.kind === "redis" && (server.kind === "docker" || probe.processId === process.pid);
    if (isOurs && !probe.isLoading) {
      return { kind: "ready", runId: probe.runId };
    }
    boundMs = isOurs ? LOADING_TIMEOUT_MS : boundMs;
    await new Promise((done) => setTimeout(done, PROBE_INTERVAL_MS));
  }
  return { kind: "no_answer" };
}

/** Chooses how the Redis of a test or of a run is provided: as a server process of this machine, or in a container. */
import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { environment, REDIS_SERVER_VARIABLE, TEST_REDIS_VARIABLE } from "./environment.ts";
import { describeTried, findRedisServer } from "./find-redis.ts";
import { startLocalTestRedis, type TestRedis } from "./local-test-redis.ts";
import type { PinnedWay } from "./pinned-servers.ts";
import { describeServer, type RedisServer } from "./redis-server.ts";

/** How a test's Redis runs: in a container, or as a server process of this machine. */
export type TestRedisKind = "docker" | "local";

/**
 * Starts a Redis, locally or in a container: see `chooseTestRedis`. The arguments are those of redis-server. The default
 * environment is this process's.
 */
export async function startTestRedis(
  extraArgs: readonly string[] = [],
  env: NodeJS.ProcessEnv = environment,
): Promise<TestRedis> {
  const kind = await chooseTestRedis(env);
  // The engine is asked once: its answer can take a minute.
  env[TEST_REDIS_VARIABLE] = kind;
  if (kind === "local") {
    return startLocalTestRedis(extraArgs, env);
  }
  // Loaded only here: the Docker client takes longer to load than a local Redis to start.
  const { startDockerTestRedis } = await import("./docker-test-redis.ts");
  return startDockerTestRedis(extraArgs);
}

/**
 * Decides between docker and local, in this order:
 * 1. ADRELAY_TEST_REDIS, if it is set.
 * 2. ADRELAY_REDIS_SERVER, if it is set: docker means docker, every other way means local.
 * 3. docker, if a Docker engine answers that has the image or can fetch it; otherwise local. Without an engine's socket
 *    the answer is immediate.
 */
export async function chooseTestRedis(env: NodeJS.ProcessEnv): Promise<TestRedisKind> {
  const kind = env[TEST_REDIS_VARIABLE] ?? "";
  if (kind === "docker" || kind === "local") {
    return kind;
  }
  if (kind !== "") {
    throw new TypeError(`${TEST_REDIS_VARIABLE} must be docker or local`);
  }
  const server = env[REDIS_SERVER_VARIABLE] ?? "";
  if (server !== "") {
    return server === "docker" ? "docker" : "local";
  }
  return mayHaveEngine(env) ? askEngine() : "local";
}

/** Whether there is an engine to ask: an address in the environment, or a socket in one of the usual places. */
function mayHaveEngine(env: NodeJS.ProcessEnv): boolean {
  const address = env["DOCKER_HOST"] ?? "";
  if (address !== "") {
    return !address.startsWith("unix://") || existsSync(address.slice("unix://".length));
  }
  const runtimeDir = env["XDG_RUNTIME_DIR"] || `/run/user/${process.getuid?.() ?? 0}`;
  const sockets = [
    "/var/run/docker.sock",
    join(runtimeDir, "docker.sock"),
    join(homedir(), ".docker/run/docker.sock"),
    join(homedir(), ".docker/desktop/docker.sock"),
  ];
  return process.platform === "win32" || sockets.some((path) => existsSync(path));
}

async function askEngine(): Promise<TestRedisKind> {
  const { canRunRedis } = await import("./docker-test-redis.ts");
  return (await canRunRedis()) ? "docker" : "local";
}

/**
 * Finds a Redis and fixes the choice for this process and its child processes, through the environment. Prints the
 * choice. Returns false, and prints why, if there is no Redis.
 */
export async function provideRedis(say: (line: string) => void): Promise<boolean> {
  const server = await findRedisServer({ log: say });
  if (server.kind === "none") {
    say(`Redis: none was found, and none could be fetched\n${describeTried(server)}`);
    return false;
  }
  // Must come before the variable is set below, because a set variable means a local server.
  const kind = await chooseTestRedis(environment);
  say(`Redis: ${kind === "docker" ? "containers, because Docker runs" : describeServer(server)}`);
  environment[TEST_REDIS_VARIABLE] = kind;
  environment[REDIS_SERVER_VARIABLE] = wayAgain(server);
  return true;
}

/**
 * An environment in which each test's Redis is a certain pinned server; or why this machine can't have that server. With
 * `wrong_pin` it could have it, if it were what the pin says: tests fail then, and are not skipped.
 */
export type PinnedTestEnv =
  | { readonly kind: "ready"; readonly env: NodeJS.ProcessEnv }
  | { readonly kind: "not_here" | "wrong_pin"; readonly why: string };

/** Finds or fetches a pinned server, so that tests can run on it whatever this run uses otherwise. */
export async function pinnedTestEnv(way: PinnedWay, log: (line: string) => void): Promise<PinnedTestEnv> {
  const env = { ...environment, [TEST_REDIS_VARIABLE]: "local", [REDIS_SERVER_VARIABLE]: way };
  const server = await findRedisServer({ log, env });
  if (server.kind !== "none") {
    return { kind: "ready", env };
  }
  const isWrong = server.tried.some(({ isWrongPin }) => isWrongPin);
  return { kind: isWrong ? "wrong_pin" : "not_here", why: server.tried.map(({ why }) => why).join("; ") };
}

/** Whether `provideRedis` has chosen this pinned server for the whole run. */
export function isProvided(way: PinnedWay): boolean {
  return environment[TEST_REDIS_VARIABLE] === "local" && environment[REDIS_SERVER_VARIABLE] === way;
}

/** The way that finds this server again. What apt-get installed is on PATH now; apt would install it once more. */
function wayAgain(server: RedisServer): string {
  if (server.kind === "docker") {
    return "docker";
  }
  return server.origin === "apt" ? "path" : server.origin;
}

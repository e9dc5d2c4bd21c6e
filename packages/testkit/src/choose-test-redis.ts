import { existsSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";

/** What runs a test's Redis: a container, or a server process of this machine. */
export type TestRedisKind = "docker" | "local";

const KIND_VARIABLE = "ADRELAY_TEST_REDIS";
const SERVER_VARIABLE = "ADRELAY_REDIS_SERVER";

let ofThisProcess: Promise<TestRedisKind> | undefined;

/**
 * ADRELAY_TEST_REDIS says it: docker or local. Without it ADRELAY_REDIS_SERVER does, which names a way to
 * find a server: docker is one, all others are local. With neither it is docker where an engine answers that
 * has the image or can fetch it; that is looked up once in a process, and at once where there is no engine.
 */
export async function chooseTestRedis(env: NodeJS.ProcessEnv): Promise<TestRedisKind> {
  const kind = env[KIND_VARIABLE] ?? "";
  if (kind === "docker" || kind === "local") {
    return kind;
  }
  if (kind !== "") {
    throw new TypeError(`${KIND_VARIABLE} knows docker and local`);
  }
  const server = env[SERVER_VARIABLE] ?? "";
  if (server !== "") {
    return server === "docker" ? "docker" : "local";
  }
  if (!mayHaveEngine(env)) {
    return "local";
  }
  ofThisProcess ??= askEngine();
  return ofThisProcess;
}

/** Whether there is anything to ask: an address that is set, or a socket where engines put theirs. */
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
  const { canRunRedis } = await import("./docker-redis-engine.ts");
  return (await canRunRedis()) ? "docker" : "local";
}

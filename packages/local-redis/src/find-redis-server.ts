import { accessSync, constants, existsSync, rmSync, writeFileSync } from "node:fs";
import { delimiter, join } from "node:path";
import { fetchEmbeddedValkey } from "./embedded-valkey.ts";
import { runCommand } from "./run-command.ts";

/** A way to run a Redis server on this machine. */
export type RedisServer =
  | { readonly kind: "binary"; readonly path: string; readonly origin: "path" | "embedded" | "apt" }
  | { readonly kind: "docker"; readonly image: string };

export type FoundServer =
  | RedisServer
  | { readonly kind: "none"; readonly tried: readonly { readonly what: string; readonly why: string }[] };

export interface FindOptions {
  /** Where a fetched server is kept. */
  readonly cacheDir: string;
  readonly log: (line: string) => void;
  readonly env: NodeJS.ProcessEnv;
}

const WAYS = ["path", "embedded", "docker", "apt"] as const;
type Way = (typeof WAYS)[number];
type Attempt = RedisServer | { readonly kind: "not_here"; readonly why: string };

export const DOCKER_IMAGE = "redis:8-alpine";
const DOCKER_TIMEOUT_MS = 10_000;
const APT_TIMEOUT_MS = 240_000;
/** While this file says no, Debian's packages don't start the services that they bring. */
const POLICY_FILE = "/usr/sbin/policy-rc.d";

/**
 * Finds a Redis server, in this order: on PATH; the embedded Valkey; Docker; apt-get, as root. The variable
 * ADRELAY_REDIS_SERVER (path, embedded, docker, apt) allows one way alone.
 */
export async function findRedisServer(options: FindOptions): Promise<FoundServer> {
  const forced = options.env["ADRELAY_REDIS_SERVER"];
  const tried: { what: string; why: string }[] = [];
  for (const way of WAYS.filter((one) => forced === undefined || forced === "" || one === forced)) {
    const found = await tryWay(way, options);
    if (found.kind !== "not_here") {
      return found;
    }
    tried.push({ what: way, why: found.why });
  }
  return {
    kind: "none",
    tried: tried.length > 0 ? tried : [{ what: String(forced), why: "is no known way" }],
  };
}

/** How the server is called in messages. */
export function describeServer(server: RedisServer): string {
  return server.kind === "docker" ? `Docker's ${server.image}` : `${server.path} (${server.origin})`;
}

function tryWay(way: Way, options: FindOptions): Promise<Attempt> {
  switch (way) {
    case "path":
      return Promise.resolve(onPath(options.env, "path"));
    case "embedded":
      return embedded(options);
    case "docker":
      return docker();
    case "apt":
      return apt(options);
    default:
      return way satisfies never;
  }
}

function onPath(env: NodeJS.ProcessEnv, origin: "path" | "apt"): Attempt {
  const folders = (env["PATH"] ?? "").split(delimiter);
  const candidates = ["redis-server", "valkey-server"].flatMap((name) =>
    folders.map((folder) => join(folder, name)),
  );
  const path = candidates.find(isExecutable);
  return path === undefined
    ? { kind: "not_here", why: "neither redis-server nor valkey-server is on PATH" }
    : { kind: "binary", path, origin };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

async function embedded({ cacheDir, log }: FindOptions): Promise<Attempt> {
  const fetched = await fetchEmbeddedValkey(cacheDir, log);
  return fetched.kind === "ok"
    ? { kind: "binary", path: fetched.path, origin: "embedded" }
    : { kind: "not_here", why: fetched.why };
}

async function docker(): Promise<Attempt> {
  const asked = await runCommand("docker", ["info", "--format", "{{.ServerVersion}}"], {
    timeoutMs: DOCKER_TIMEOUT_MS,
  });
  return asked.kind === "ok" ? { kind: "docker", image: DOCKER_IMAGE } : { kind: "not_here", why: asked.why };
}

async function apt({ log, env }: FindOptions): Promise<Attempt> {
  if (process.getuid?.() !== 0) {
    return { kind: "not_here", why: "apt-get needs root" };
  }
  log("installing redis-server with apt-get");
  const isGuarded = existsSync(POLICY_FILE);
  if (!isGuarded) {
    writeFileSync(POLICY_FILE, "#!/bin/sh\nexit 101\n", { mode: 0o755 });
  }
  try {
    const command = "apt-get update -qq && apt-get install -y -qq --no-install-recommends redis-server";
    const installed = await runCommand("sh", ["-c", command], {
      timeoutMs: APT_TIMEOUT_MS,
      env: { ...env, DEBIAN_FRONTEND: "noninteractive" },
    });
    return installed.kind === "ok" ? onPath(env, "apt") : { kind: "not_here", why: installed.why };
  } finally {
    if (!isGuarded) {
      rmSync(POLICY_FILE, { force: true });
    }
  }
}

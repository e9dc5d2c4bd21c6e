import type { RedisServer } from "../redis-server.ts";
import { findWithApt } from "./apt.ts";
import { findDocker } from "./docker.ts";
import { findEmbedded } from "./embedded-valkey.ts";
import { findOnPath } from "./on-path.ts";
import type { Attempt, SearchContext } from "./search.ts";

/** A server, or what was tried and why each way failed, so that the caller can say what to install. */
export type FoundServer =
  | RedisServer
  | { readonly kind: "none"; readonly tried: readonly { readonly what: string; readonly why: string }[] };

export interface FindOptions {
  /** Where a fetched server is kept; safe to share between processes that search at once. */
  readonly cacheDir: string;
  /** Hears of the slow steps: a download, an installation. */
  readonly log: (line: string) => void;
  /** PATH and ADRELAY_REDIS_SERVER are read from it; this process' own if not given. */
  readonly env?: NodeJS.ProcessEnv;
}

/** The one variable that allows one way alone: path, embedded, docker or apt. */
const FORCE_VARIABLE = "ADRELAY_REDIS_SERVER";

type Way = "path" | "embedded" | "docker" | "apt";

/** Those that need no root and leave nothing behind outside the checkout come first. */
const WAYS: Readonly<Record<Way, (context: SearchContext) => Promise<Attempt>>> = {
  path: ({ env }) => findOnPath(env, "path"),
  embedded: findEmbedded,
  docker: findDocker,
  apt: findWithApt,
};

/**
 * Finds a Redis server, in this order: `redis-server` or `valkey-server` on PATH; the embedded Valkey from
 * PyPI; Docker; apt-get, as root. Never rejects for a way that fails: the next one is tried.
 */
export async function findRedisServer({
  cacheDir,
  log,
  env = process.env,
}: FindOptions): Promise<FoundServer> {
  const forced = env[FORCE_VARIABLE] ?? "";
  const ways = Object.entries(WAYS).filter(([name]) => forced === "" || name === forced);
  if (ways.length === 0) {
    const why = `${FORCE_VARIABLE} knows ${Object.keys(WAYS).join(", ")}`;
    return { kind: "none", tried: [{ what: forced, why }] };
  }
  const tried: { what: string; why: string }[] = [];
  for (const [what, find] of ways) {
    const attempt = await settle(() => find({ cacheDir, log, env }));
    if (attempt.kind === "found") {
      return attempt.server;
    }
    tried.push({ what, why: attempt.why });
  }
  return { kind: "none", tried };
}

/** A full disk or a folder without rights is one way's failure, not the search's. */
async function settle(find: () => Promise<Attempt>): Promise<Attempt> {
  try {
    return await find();
  } catch (error) {
    return { kind: "not_here", why: error instanceof Error ? error.message : String(error) };
  }
}

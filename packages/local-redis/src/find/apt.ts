import { installDebianPackage } from "./debian-package.ts";
import { findOnPath } from "./on-path.ts";
import type { Attempt, SearchContext } from "./search.ts";

/** Installs Debian's redis-server, without its service being started. Needs root. */
export async function findWithApt({ log, env }: SearchContext): Promise<Attempt> {
  const installed = await installDebianPackage("redis-server", { log, env });
  return installed.kind === "installed" ? findOnPath(env, "apt") : { kind: "not_here", why: installed.why };
}

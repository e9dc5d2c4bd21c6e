import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { runCommand } from "../run-command.ts";
import { findOnPath } from "./on-path.ts";
import type { Attempt, SearchContext } from "./search.ts";

const TIMEOUT_MS = 240_000;
/** While this file says no, Debian's packages don't start the services that they bring. */
const POLICY_FILE = "/usr/sbin/policy-rc.d";
const POLICY =
  "#!/bin/sh\n# Temporary: Adrelay installs redis-server without starting it as a service.\nexit 101\n";

/** Installs Debian's redis-server, without its service being started. Needs root. */
export async function findWithApt({ log, env }: SearchContext): Promise<Attempt> {
  if (process.getuid?.() !== 0) {
    return { kind: "not_here", why: "apt-get needs root" };
  }
  const apt = (...args: string[]) =>
    runCommand("apt-get", args, {
      timeoutMs: TIMEOUT_MS,
      env: { ...env, DEBIAN_FRONTEND: "noninteractive" },
    });
  const known = await apt("update", "-qq");
  if (known.kind === "failed") {
    return { kind: "not_here", why: known.why };
  }
  log("installing redis-server with apt-get");
  const installed = await withoutServices(() =>
    apt("install", "-y", "-qq", "--no-install-recommends", "redis-server"),
  );
  return installed.kind === "ok" ? findOnPath(env, "apt") : { kind: "not_here", why: installed.why };
}

async function withoutServices<T>(install: () => Promise<T>): Promise<T> {
  const standing = readPolicy();
  // One that an interrupted run of ours left is ours to remove; the machine's own stays as it is.
  const isOurs = standing === undefined || standing === POLICY;
  if (isOurs) {
    writeFileSync(POLICY_FILE, POLICY, { mode: 0o755 });
  }
  try {
    return await install();
  } finally {
    if (isOurs) {
      rmSync(POLICY_FILE, { force: true });
    }
  }
}

function readPolicy(): string | undefined {
  try {
    return readFileSync(POLICY_FILE, "utf8");
  } catch {
    return undefined;
  }
}

import { readFileSync, rmSync, writeFileSync } from "node:fs";
import { runCommand } from "../run-command.ts";
import type { SearchContext } from "./search.ts";

/** `couldBe`: the archives answered, so that it is this machine or its apt that needs mending. */
export type Installation =
  | { readonly kind: "installed" }
  | { readonly kind: "not_installed"; readonly why: string; readonly couldBe: boolean };

const TIMEOUT_MS = 240_000;
/** Another search may be installing at this moment. */
const LOCK_TIMEOUT_SECONDS = 120;
/** While this file says no, Debian's packages don't start the services that they bring. */
const POLICY_FILE = "/usr/sbin/policy-rc.d";
const POLICY =
  "#!/bin/sh\n# Temporary: Adrelay installs a server without starting it as a service.\nexit 101\n";

/** Installs a package of Debian with apt-get, without its service being started. Needs root. */
export async function installDebianPackage(
  name: string,
  { log, env }: Pick<SearchContext, "log" | "env">,
): Promise<Installation> {
  if (process.getuid?.() !== 0) {
    return { kind: "not_installed", why: "apt-get needs root", couldBe: false };
  }
  const apt = (...args: string[]) =>
    runCommand("apt-get", ["-qq", "-o", `DPkg::Lock::Timeout=${LOCK_TIMEOUT_SECONDS}`, ...args], {
      timeoutMs: TIMEOUT_MS,
      env: { ...env, DEBIAN_FRONTEND: "noninteractive" },
    });
  // An archive that can't be reached is an error then; what is known of the others may do all the same.
  const known = await apt("-o", "APT::Update::Error-Mode=any", "update");
  log(`installing ${name} with apt-get`);
  const installed = await withoutServices(() => apt("install", "-y", "--no-install-recommends", name));
  return installed.kind === "ok"
    ? { kind: "installed" }
    : { kind: "not_installed", why: installed.why, couldBe: known.kind === "ok" };
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

import { runCommand } from "../run-command.ts";

export type VersionCheck = { readonly kind: "fits" } | { readonly kind: "unfit"; readonly why: string };

/** The queue's scripts count on what Redis has since 6.2. */
const OLDEST = { major: 6, minor: 2 };
const TIMEOUT_MS = 10_000;

/** Runs a server's `--version`: shows that the binary runs on this machine at all, and that it isn't too old. */
export async function checkServerVersion(path: string, env: NodeJS.ProcessEnv): Promise<VersionCheck> {
  const ran = await runCommand(path, ["--version"], { timeoutMs: TIMEOUT_MS, env });
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

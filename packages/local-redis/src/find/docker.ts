import { runCommand } from "../run-command.ts";
import type { Attempt, SearchContext } from "./search.ts";

const IMAGE = "redis:8-alpine";
const ASK_TIMEOUT_MS = 15_000;
const PULL_TIMEOUT_MS = 180_000;

/** Docker, if its daemon answers; the image is fetched now, so that a start later is quick. */
export async function findDocker({ log, env }: SearchContext): Promise<Attempt> {
  const ask = { timeoutMs: ASK_TIMEOUT_MS, env };
  const info = await runCommand("docker", ["info", "--format", "{{.ServerVersion}}"], ask);
  if (info.kind === "failed") {
    return { kind: "not_here", why: info.why };
  }
  // Some clients end with 0 and no version when there is no daemon.
  if (info.stdout.trim() === "") {
    return { kind: "not_here", why: "Docker's daemon does not answer" };
  }
  const present = await runCommand("docker", ["image", "inspect", IMAGE], ask);
  if (present.kind === "failed") {
    log(`fetching the image ${IMAGE}`);
    const pulled = await runCommand("docker", ["pull", "--quiet", IMAGE], {
      timeoutMs: PULL_TIMEOUT_MS,
      env,
    });
    if (pulled.kind === "failed") {
      return { kind: "not_here", why: pulled.why };
    }
  }
  return { kind: "found", server: { kind: "docker", image: IMAGE } };
}

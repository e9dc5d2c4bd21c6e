import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import type { Attempt } from "./search.ts";
import { checkServerVersion } from "./server-version.ts";

const NAMES = ["redis-server", "valkey-server"];

/** The first server on PATH that runs and is new enough. */
export async function findOnPath(env: NodeJS.ProcessEnv, origin: "path" | "apt"): Promise<Attempt> {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const candidates = NAMES.flatMap((name) => folders.map((folder) => join(folder, name)));
  let why = `neither ${NAMES.join(" nor ")} is on PATH`;
  for (const path of candidates.filter(isExecutable)) {
    const version = await checkServerVersion(path, env);
    if (version.kind === "fits") {
      return { kind: "found", server: { kind: "binary", path, origin } };
    }
    why = version.why;
  }
  return { kind: "not_here", why };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

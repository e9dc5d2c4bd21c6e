import { hostname } from "node:os";
import manifest from "../../package.json" with { type: "json" };

/** The version of this Adrelay: all of its packages have the same. */
export const ADRELAY_VERSION: string = manifest.version;

/** What tells this process from others of its kind. */
export function describeProcess() {
  return { host: hostname(), pid: process.pid, version: ADRELAY_VERSION, startedAtMs: Date.now() } as const;
}

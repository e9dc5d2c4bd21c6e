import { accessSync, constants } from "node:fs";
import { delimiter, join } from "node:path";
import { installDebianPackage } from "@adrelay/local-redis";

/** Both come in Debian's package `prometheus` and in Prometheus' own archive. */
export interface PrometheusPrograms {
  readonly prometheus: string;
  readonly promtool: string;
}

/** `couldBe`: it could have been installed here, so that its absence is a fault and no circumstance. */
export type FoundPrometheus =
  | { readonly kind: "found"; readonly programs: PrometheusPrograms }
  | { readonly kind: "none"; readonly tried: readonly string[]; readonly couldBe: boolean };

export interface FindOptions {
  /** Hears of an installation. */
  readonly log: (line: string) => void;
  /** PATH and ADRELAY_PROMETHEUS are read from it; this process' own if not given. */
  readonly env?: NodeJS.ProcessEnv;
}

/** `path` allows what is on PATH alone, so that a run looks for an installation once. */
const FORCE_VARIABLE = "ADRELAY_PROMETHEUS";
const DEBIAN_PACKAGE = "prometheus";

/** Finds both programs: on PATH, or by apt-get, as root. Never rejects for a way that fails. */
export async function findPrometheus({ log, env = process.env }: FindOptions): Promise<FoundPrometheus> {
  const programs = findOnPath(env);
  if (programs !== undefined) {
    return { kind: "found", programs };
  }
  const notOnPath = "path: prometheus and promtool are not both on PATH";
  if (env[FORCE_VARIABLE] === "path") {
    return { kind: "none", tried: [notOnPath], couldBe: false };
  }
  const installed = await installDebianPackage(DEBIAN_PACKAGE, { log, env });
  if (installed.kind === "not_installed") {
    return { kind: "none", tried: [notOnPath, `apt: ${installed.why}`], couldBe: installed.couldBe };
  }
  const fresh = findOnPath(env);
  return fresh === undefined
    ? { kind: "none", tried: [notOnPath, "apt: what it installed is not on PATH"], couldBe: true }
    : { kind: "found", programs: fresh };
}

/** What to do about it, for people. */
export function describeMissing({ tried }: Extract<FoundPrometheus, { kind: "none" }>): string {
  const ways = tried.map((line) => `  ${line}`).join("\n");
  return `no Prometheus was found, and none could be installed:\n${ways}\nInstall prometheus and promtool (Debian: apt-get install prometheus).`;
}

function findOnPath(env: NodeJS.ProcessEnv): PrometheusPrograms | undefined {
  const folders = (env["PATH"] ?? "").split(delimiter).filter((folder) => folder !== "");
  const find = (name: string) => folders.map((folder) => join(folder, name)).find(isExecutable);
  const [prometheus, promtool] = [find("prometheus"), find("promtool")];
  return prometheus === undefined || promtool === undefined ? undefined : { prometheus, promtool };
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return true;
  } catch {
    return false;
  }
}

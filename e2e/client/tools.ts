/**
 * What the client's tests run beside this Node: other runtimes and checkers of packages. npm fetches them once for all checkouts
 * of a user, by the lock file in `tools`, which pins version and content.
 */
import { execFile } from "node:child_process";
import { createHash, randomUUID } from "node:crypto";
import { copyFileSync, existsSync, mkdirSync, readFileSync, renameSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";

const FILES = ["package.json", "package-lock.json"].map((name) => [
  name,
  fileURLToPath(new URL(`tools/${name}`, import.meta.url)),
]);
const FETCH_TIMEOUT_MS = 240_000;

/** The folder with the tools' node_modules, or why there is none. */
export type Tools =
  | { readonly kind: "here"; readonly folder: string }
  | { readonly kind: "not_here"; readonly why: string };

/** Fetches the tools if they aren't here yet. They are moved into place as a whole, so that several runs don't meet. */
export async function provideTools(): Promise<Tools> {
  const hash = createHash("sha256");
  for (const [, path = ""] of FILES) {
    hash.update(readFileSync(path));
  }
  const cache = process.env["XDG_CACHE_HOME"] ?? join(homedir(), ".cache");
  const folder = join(cache, "adrelay", `client-tools-${hash.digest("hex").slice(0, 16)}`);
  if (existsSync(folder)) {
    return { kind: "here", folder };
  }
  const work = `${folder}-${randomUUID()}`;
  try {
    mkdirSync(work, { recursive: true });
    for (const [name = "", path = ""] of FILES) {
      copyFileSync(path, join(work, name));
    }
    console.log(`fetching the client's test tools (900 MB on disk) from npm into ${cache}/adrelay`);
    const words = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--silent", "--fetch-retries=1"];
    await promisify(execFile)("npm", words, { cwd: work, timeout: FETCH_TIMEOUT_MS });
    renameSync(work, folder);
    return { kind: "here", folder };
  } catch (error) {
    rmSync(work, { recursive: true, force: true });
    // Another run may have been faster.
    return existsSync(folder) ? { kind: "here", folder } : { kind: "not_here", why: String(error) };
  }
}

/** A runtime with Node's kind of command line. */
export interface Runtime {
  readonly title: string;
  readonly program: string;
  readonly args: readonly string[];
}

/** The runtimes that the client is tested on, besides this Node. npm left out those that this platform can't have. */
export function runtimesIn(folder: string): readonly Runtime[] {
  const bin = (path: string) => join(folder, "node_modules", path);
  return [
    ...["18", "20", "22"].map((major) => ({
      title: `Node ${major}`,
      program: bin(`node-${major}-linux-x64/bin/node`),
      args: [],
    })),
    { title: "Bun", program: bin("@oven/bun-linux-x64/bin/bun"), args: ["run"] },
    {
      title: "Deno",
      program: bin("@deno/linux-x64-glibc/deno"),
      args: ["run", "--allow-net", "--allow-read", "--allow-env", "--node-modules-dir=manual", "--quiet"],
    },
  ];
}

export function workerdIn(folder: string): string {
  return join(folder, "node_modules/@cloudflare/workerd-linux-64/bin/workerd");
}

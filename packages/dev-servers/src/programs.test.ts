import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";
import { installDebianPackage, runCommand } from "./programs.ts";

const run = (program: string, args: string[], timeoutMs = 10_000) => runCommand(program, args, { timeoutMs });
const node = (script: string, timeoutMs?: number) => run(process.execPath, ["-e", script], timeoutMs);

test("a program that succeeds returns its output", async () => {
  expect(await node("console.log('fine')")).toEqual({ kind: "ok", stdout: "fine\n" });
});

test("a failure is reported with the program's last line", async () => {
  expect(await node("console.error('first'); console.error('no space left'); process.exit(3)")).toEqual({
    kind: "failed",
    why: "no space left",
  });
});

test("a silent failure is reported with the exit code", async () => {
  expect(await node("process.exit(3)")).toMatchObject({ why: expect.stringContaining("ended with 3") });
});

test.each(["no-such-program", `${process.execPath}/below-a-file`])(
  "%s is a failure, not a throw",
  async (name) => {
    expect(await run(name, [])).toMatchObject({ kind: "failed" });
  },
);

test("a program that takes too long is killed, and the reason says so", async () => {
  expect(await node("setInterval(() => {}, 1000)", 300)).toMatchObject({
    why: expect.stringContaining("took longer than 0.3 s"),
  });
});

test("an aborted program is killed, and one isn't started after that", async () => {
  const abort = new AbortController();
  const options = { timeoutMs: 600_000, signal: abort.signal };
  const hanging = runCommand(process.execPath, ["-e", "setInterval(() => {}, 1000)"], options);
  abort.abort();
  expect(await hanging).toEqual({ kind: "failed", why: `${process.execPath} was aborted` });
  expect(await runCommand(process.execPath, ["-e", "0"], options)).toMatchObject({ kind: "failed" });
});

const isRoot = process.getuid?.() === 0;

/** A folder that is the whole PATH, with a script of this name. */
function folderWith(name: string, script: string): string {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-programs-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  writeFileSync(join(folder, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
  return folder;
}

test.runIf(isRoot)("without apt-get nothing is installed, and nothing is said of it", async () => {
  const lines: string[] = [];
  const env = { PATH: folderWith("no-apt-get", "exit 0") };
  expect(await installDebianPackage("redis-server", { log: (line) => lines.push(line), env })).toEqual({
    kind: "not_installed",
    why: "apt-get is not installed",
    couldBe: false,
  });
  expect(lines).toEqual([]);
});

test.runIf(isRoot)("a system that can't be written gets no package, and the reason says so", async () => {
  const folder = folderWith("apt-get", "exit 0");
  const policyFile = join(folder, "apt-get", "below-a-file");
  expect(
    await installDebianPackage("redis-server", { log: () => {}, env: { PATH: folder }, policyFile }),
  ).toMatchObject({ kind: "not_installed", why: expect.stringContaining("ENOTDIR"), couldBe: false });
});

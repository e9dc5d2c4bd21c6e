/** `npm run bench` as its user runs it, except that Node is already there. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { listProcesses, selectDescendants } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";

/** Starts the benchmark in its own process group and with its own temporary folder. */
function startCommand(args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-bench-command-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const script = fileURLToPath(new URL("../scripts/bench.ts", import.meta.url));
  const child = spawn(process.execPath, [script, ...args], {
    env: { ...process.env, TMPDIR: folder },
    stdio: ["ignore", "pipe", "pipe"],
    detached: true,
  });
  const pid = child.pid ?? 0;
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const exited = new Promise((resolve) => child.once("close", resolve));
  return { folder, pid, exited, output: () => output };
}

/** Redis, a server and a load generator. */
const PROCESSES_OF_INTAKE = 3;

test("Ctrl-C during a round leaves no process and no file behind", async () => {
  const args = ["--only", "intake", "--rounds", "1", "--seconds", "60"];
  const { folder, pid, exited, output } = startCommand(args);
  const heading = "\nintake\n";
  await eventually(() => expect(output()).toContain(heading), 60_000);
  const pids = await eventually(() => {
    const running = selectDescendants(listProcesses(), pid);
    expect(running.length).toBeGreaterThanOrEqual(PROCESSES_OF_INTAKE);
    return running;
  }, 60_000);

  // A terminal sends the signal to the whole group.
  process.kill(-pid, "SIGINT");
  const code = await exited;
  const [, after] = output().split(heading);
  expect({ code, after }).toEqual({ code: 130, after: "\nnpm run bench: stopping (SIGINT)\n" });
  expect(readdirSync(folder)).toEqual([]);
  expect(listProcesses().filter((one) => pids.includes(one.pid))).toEqual([]);
});

test("a run prints its table and leaves no file behind", async () => {
  const { folder, exited, output } = startCommand(["--only", "processes", "--rounds", "1", "--seconds", "1"]);
  expect(await exited, output()).toBe(0);
  expect(output()).toMatch(/from spawn to ready, gateway .* naive server/);
  expect(readdirSync(folder)).toEqual([]);
});

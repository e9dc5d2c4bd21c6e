/** `npm run bench:ad-server` and `npm run bench:dead-letters` as their user meets them, minus the fetching of Node. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { eventually } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";
import { listProcesses, selectDescendants } from "../scripts/test/process-tree.ts";

/** Starts it in a group and with a temporary folder of its own. */
function startCommand(command: string, args: readonly string[]) {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-bench-command-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const script = fileURLToPath(new URL(`../scripts/${command}.ts`, import.meta.url));
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

test.each([
  ["bench-ad-server", "--ads 50 --rate 50 --seconds 60", "start-up with 50 ads"],
  ["bench-dead-letters", "--letters 500 --rate 20", "bulk replay of 500"],
])("Ctrl-C in the midst of %s %s leaves no process and no file behind", async (command, args, sign) => {
  const { folder, pid, exited, output } = startCommand(command, args.split(" "));
  await eventually(() => expect(output()).toContain(sign), 60_000);
  const pids = selectDescendants(listProcesses(), pid);
  expect(pids).not.toEqual([]);

  // A terminal sends it to the whole group.
  process.kill(-pid, "SIGINT");
  const code = await exited;
  const [, told] = output().split(sign);
  expect({ code, told: told?.split("\n").slice(1) }).toEqual({
    code: 130,
    told: ["", `npm run ${command.replace("-", ":")}: stopping (SIGINT)`, ""],
  });
  expect(readdirSync(folder)).toEqual([]);
  expect(listProcesses().filter((one) => pids.includes(one.pid))).toEqual([]);
});

test.each([
  ["bench-ad-server", "--ads 20 --rate 20 --seconds 1"],
  ["bench-dead-letters", "--letters 60"],
])("%s %s measures, and leaves no file behind", async (command, args) => {
  const { folder, exited, output } = startCommand(command, args.split(" "));
  expect(await exited, output()).toBe(0);
  expect(readdirSync(folder)).toEqual([]);
});

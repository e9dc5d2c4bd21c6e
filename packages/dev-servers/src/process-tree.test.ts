import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { describe, expect, it, onTestFinished } from "vitest";
import { listWithPs, selectDescendants, stopDescendants } from "./process-tree.ts";

function isAlive(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

describe("the descendants of a process", () => {
  it("are its children and their children, nothing else", () => {
    const entries = [
      { pid: 2, parent: 1 },
      { pid: 3, parent: 2 },
      { pid: 4, parent: 3 },
      { pid: 5, parent: 1 },
    ];
    expect(selectDescendants(entries, 2)).toEqual([3, 4]);
  });

  it.skipIf(spawnSync("ps", ["-A", "-o", "pid="]).status !== 0)("leave out the ps that lists them", () => {
    const child = spawn("sleep", ["60"], { stdio: "ignore" });
    onTestFinished(() => void child.kill("SIGKILL"));
    const listed = selectDescendants(listWithPs(), process.pid);
    expect(listed).toContain(child.pid);
    // The ps has ended by now.
    expect(listed.filter((pid) => !isAlive(pid))).toEqual([]);
  });

  it("are stopped, also frozen ones", async () => {
    const parent = spawn("sh", ["-c", "sleep 60 & echo $!; wait"], { stdio: ["ignore", "pipe", "ignore"] });
    const ended = once(parent, "exit");
    const [child] = await once(parent.stdout, "data");
    process.kill(Number(child), "SIGSTOP");
    await stopDescendants(parent.pid ?? 0);
    expect(await ended).toEqual([0, null]);
  });
});

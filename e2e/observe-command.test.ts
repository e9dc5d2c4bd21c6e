/** `npm run observe` as its user runs it, except that Node is already there. */
import { spawn } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { findTestPrometheus } from "@adrelay/dev-servers";
import { eventually } from "@adrelay/testkit";
import { expect, onTestFinished, test } from "vitest";

test("Ctrl-C during traffic leaves no process and no file behind", async ({ skip }) => {
  const found = await findTestPrometheus();
  if (found.kind === "skip") {
    return skip(found.why);
  }
  const folder = mkdtempSync(join(tmpdir(), "adrelay-observe-command-"));
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
  const script = fileURLToPath(new URL("../scripts/observe.ts", import.meta.url));
  const env = { ...process.env, TMPDIR: folder };
  const child = spawn(process.execPath, [script], { env, stdio: ["ignore", "pipe", "pipe"] });
  let output = "";
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      output += text;
    });
  }
  const exited = new Promise((resolve) => child.once("close", resolve));
  await eventually(() => expect(output).toContain("s of traffic and faults"), 60_000);
  const addresses = [...output.matchAll(/(?:http|redis):\/\/(127\.0\.0\.1:\d+)/g)].map(([, host]) => host);
  const pids = [...output.matchAll(/pid (\d+)/g)].map(([, pid]) => Number(pid));
  expect({ addresses: addresses.length, pids: pids.length }).toEqual({ addresses: 2, pids: 5 });

  child.kill("SIGINT");
  expect(await exited, output).toBe(130);
  expect(readdirSync(folder)).toEqual([]);
  for (const pid of pids) {
    expect(() => process.kill(pid, 0)).toThrow("ESRCH");
  }
  for (const host of addresses) {
    await expect(fetch(`http://${host}`)).rejects.toThrow();
  }
});

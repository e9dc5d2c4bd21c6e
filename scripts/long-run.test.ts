import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, onTestFinished, test } from "vitest";

/** A run whose ordered stop waits for a second signal. */
const RUN = `
import { leaveOnSignals, makeLeave } from ${JSON.stringify(import.meta.resolve("./long-run.ts"))};
const second = Promise.withResolvers();
let signals = 0;
const count = () => {
  signals += 1;
  if (signals === 2) {
    second.resolve();
  }
};
process.on("SIGINT", count).on("SIGTERM", count);
leaveOnSignals("the run", makeLeave(process.argv[1], () => second.promise));
setInterval(() => {}, 1000);
console.error("runs");
`;

test.each(["SIGINT", "SIGTERM"] as const)(
  "a run that Ctrl-C ends reports it once, although %s follows",
  async (follower) => {
    const folder = mkdtempSync(join(tmpdir(), "adrelay-long-run-"));
    onTestFinished(() => rmSync(folder, { recursive: true, force: true }));
    const child = spawn(process.execPath, ["--input-type=module", "-e", RUN, folder], {
      stdio: ["ignore", "ignore", "pipe"],
    });
    onTestFinished(() => void child.kill("SIGKILL"));
    const signals = ["SIGINT", follower] as const;
    let output = "";
    let sent = 0;
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      output += text;
      // The first signal is sent once it runs, the second one once it stops.
      const next = signals[sent];
      if (next !== undefined) {
        sent += 1;
        child.kill(next);
      }
    });
    const [code] = await once(child, "close");
    expect({ code, output }).toEqual({ code: 130, output: "runs\n\nthe run: stopping (SIGINT)\n" });
    expect(existsSync(folder)).toBe(false);
  },
);

/** A run that can't remove its folder, and that leaves at an uncaught error, as `longRun` does. */
const UNTIDY_RUN = `
import { makeLeave } from ${JSON.stringify(import.meta.resolve("./long-run.ts"))};
const leave = makeLeave("no\\0folder");
process.on("uncaughtException", () => void leave(1));
void leave(0);
`;

test("a run ends and says why, although its folder can't be removed", async () => {
  const child = spawn(process.execPath, ["--input-type=module", "-e", UNTIDY_RUN], {
    stdio: ["ignore", "ignore", "pipe"],
  });
  onTestFinished(() => void child.kill("SIGKILL"));
  let output = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    output += text;
  });
  const [code] = await once(child, "close");
  expect(code).toBe(0);
  expect(output).toContain("null bytes");
});

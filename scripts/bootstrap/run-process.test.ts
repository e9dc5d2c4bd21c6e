import { spawn } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";

let dir: string;

beforeEach(() => {
  dir = mkdtempSync(join(tmpdir(), "adrelay-run-process-"));
});
afterEach(() => rmSync(dir, { recursive: true }));

/** Says when it is told to stop, and ends by itself otherwise. */
const SCRIPT = `
process.once("SIGTERM", () => { console.log("told to stop"); process.exit(); });
console.log("runs");
setTimeout(() => { console.log("ended by itself"); process.exit(); }, 3000);
`;

/** Runs the script as npm does, in a shell. Then ends that shell, and resolves to all output. */
async function endShellOf(lifecycleEvent: string | undefined): Promise<string> {
  const module = new URL("./run-process.mjs", import.meta.url).href;
  const [script, wrapper] = [join(dir, "script.mjs"), join(dir, "wrapper.mjs")];
  writeFileSync(script, SCRIPT);
  const options = { node: process.execPath, script, args: [], cwd: dir, PATH: process.env["PATH"] };
  writeFileSync(
    wrapper,
    `const { runScript } = await import(${JSON.stringify(module)});\nawait runScript(${JSON.stringify(options)});\n`,
  );
  // The last command keeps the shell from becoming Node.
  const shell = spawn("sh", ["-c", `"${process.execPath}" "${wrapper}"; true`], {
    env: { ...process.env, npm_lifecycle_event: lifecycleEvent },
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  shell.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (text === "runs\n") {
      shell.kill("SIGTERM");
    }
  });
  // The pipe closes once the script has ended, too.
  await new Promise((resolve) => shell.once("close", resolve));
  return output;
}

it("stops the script when npm was ended", async () => {
  expect(await endShellOf("start")).toBe("runs\ntold to stop\n");
});

it("leaves the script running when a shell without npm ends", async () => {
  expect(await endShellOf(undefined)).toBe("runs\nended by itself\n");
});

import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Check } from "./checks.ts";
import { judgeVitestRun, type Verdict } from "./vitest-report.ts";

/** Runs one check, its output going where this process' goes. */
export async function runCheck(check: Check, root: string): Promise<Verdict> {
  switch (check.kind) {
    case "static": {
      const program = join(root, "node_modules", ".bin", check.program);
      const hasPassed = (await run(program, check.args, root)) === 0;
      return { tally: { passed: Number(hasPassed), failed: Number(!hasPassed), skipped: 0 }, remark: "" };
    }
    case "tests":
      return runTests(check, root);
    default:
      return check satisfies never;
  }
}

async function runTests(
  { projects, filters, mayBeEmpty }: Extract<Check, { kind: "tests" }>,
  root: string,
): Promise<Verdict> {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-test-report-"));
  const file = join(folder, "report.json");
  try {
    const vitest = join(root, "node_modules", "vitest", "vitest.mjs");
    const reports = ["--reporter=default", "--reporter=json", `--outputFile.json=${file}`];
    const chosen = projects.flatMap((project) => ["--project", project]);
    const args = [vitest, "run", ...chosen, "--passWithNoTests", ...reports, ...filters];
    const exitCode = await run(process.execPath, args, root);
    return judgeVitestRun({ report: readReport(file), exitCode, mayBeEmpty });
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Answers with the exit code; null if a signal ended it or it did not run at all. */
function run(program: string, args: readonly string[], cwd: string): Promise<number | null> {
  return new Promise((resolve) => {
    // A group of its own: a Ctrl-C in the terminal comes to this process alone, which stops all below it.
    // Vitest starts a process for each file, and its tests start the apps again and again.
    const env = { NODE_COMPILE_CACHE: join(cwd, ".adrelay", "compile-cache"), ...process.env };
    const child = spawn(program, args, { cwd, env, stdio: ["ignore", "inherit", "inherit"], detached: true });
    child.once("error", (error) => {
      console.error(`${program} does not run: ${error.message}`);
      resolve(null);
    });
    child.once("exit", resolve);
  });
}

function readReport(file: string): string | undefined {
  try {
    return readFileSync(file, "utf8");
  } catch {
    return undefined;
  }
}

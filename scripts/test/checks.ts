/** The checks of `npm test`: which ones a run has, and how they are run. */
import { spawn } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { PINNED_SERVERS, type PinnedWay } from "@adrelay/dev-servers";
import type { TestStage } from "../bootstrap/command-line.mjs";
import { environment } from "../environment.ts";
import { type Audit, auditPackages, describeAudit } from "../supply-chain/audit.ts";
import { judgeVitestRun, NOTHING, type Verdict } from "./outcome.ts";

/** One step of a test run: a static check, which passes or fails as a whole, or test projects. */
export type Check = {
  readonly name: string;
  readonly needsRedis: boolean;
} /** Asks the registry for advisories. It is skipped if they can't be had. */ & (
  | { readonly kind: "audit" }
  | { readonly kind: "static"; readonly program: string; readonly args: readonly string[] }
  | {
      readonly kind: "tests";
      /** Names from vitest.config.ts. */
      readonly projects: readonly string[];
      readonly filters: readonly string[];
      readonly mayBeEmpty: boolean;
      /** The server that its projects run on; undefined if that is the server of this run. */
      readonly server?: PinnedWay;
    }
);

interface Selection {
  readonly stages: readonly TestStage[];
  readonly filters: readonly string[];
}

/** The checks of the chosen stages, in their order. */
export function planChecks({ stages, filters }: Selection): readonly Check[] {
  const hasFilters = filters.length > 0;
  const plan: readonly (Check & { readonly of: TestStage })[] = [
    staticCheck("biome ci", "biome", ["ci", "--error-on-warnings", "."]),
    staticCheck("tsc", "tsc", ["-p", "tsconfig.json"]),
    staticCheck("knip", "knip", []),
    { of: "static", kind: "audit", name: "advisories", needsRedis: false },
    // There are always unit tests. If none is found, the run is broken.
    { ...testCheck("unit", filters), needsRedis: false, mayBeEmpty: hasFilters },
    testCheck("integration", filters),
    ...PINNED_SERVERS.map(({ way, title }) => ({
      ...testCheck("integration", filters),
      name: `store tests on ${title}`,
      projects: [`store-${way}`],
      server: way,
    })),
    testCheck("e2e", filters),
  ];
  return plan.filter(({ of }) => stages.includes(of));
}

function staticCheck(name: string, program: string, args: readonly string[]) {
  return { of: "static", kind: "static", name, program, args, needsRedis: false } as const;
}

/** A kind of tests has the project of its name. e2e has three more, for tests that mostly wait and for tests that others would disturb. */
function testCheck(kind: "unit" | "integration" | "e2e", filters: readonly string[]) {
  const projects = kind === "e2e" ? ["e2e", "e2e-in-fours", "e2e-in-pairs", "e2e-alone"] : [kind];
  return {
    of: kind,
    kind: "tests",
    name: `${kind} tests`,
    projects,
    filters,
    needsRedis: true,
    mayBeEmpty: true,
  } as const;
}

/** Runs one check. Its output goes to the output of this process. */
export async function runCheck(check: Check, root: string): Promise<Verdict> {
  switch (check.kind) {
    case "static": {
      const program = join(root, "node_modules", ".bin", check.program);
      const hasPassed = (await run(program, check.args, root)) === 0;
      return { tally: { passed: Number(hasPassed), failed: Number(!hasPassed), skipped: 0 }, remark: "" };
    }
    case "audit":
      return judgeAudit(await auditPackages());
    case "tests":
      return runTests(check, root);
    default:
      return check satisfies never;
  }
}

function judgeAudit(audit: Audit): Verdict {
  const counts = { clean: "passed", found: "failed", unknown: "skipped" } as const;
  return { tally: { ...NOTHING, [counts[audit.kind]]: 1 }, remark: describeAudit(audit) };
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

/** Resolves to the exit code; to null if a signal ended the program or it did not run at all. */
function run(program: string, args: readonly string[], cwd: string): Promise<number | null> {
  return new Promise((resolve) => {
    // It gets its own process group: Ctrl-C in the terminal reaches only this process, which stops its descendants.
    // The compile cache helps, because vitest starts a process for each file and the tests start the apps many times.
    const env = { NODE_COMPILE_CACHE: join(cwd, ".adrelay", "compile-cache"), ...environment };
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

import { NOTHING, type Tally } from "./tally.ts";

/** How a vitest run ended: its JSON report, if it wrote one, and its exit code; null if a signal ended it. */
export interface VitestRun {
  readonly report: string | undefined;
  readonly exitCode: number | null;
  /** Whether it is fine that nothing ran. */
  readonly mayBeEmpty: boolean;
}

export interface Verdict {
  readonly tally: Tally;
  /** What failed beside single tests; empty if nothing did. */
  readonly remark: string;
}

/**
 * Counts a vitest run. Never green by accident: no report, a file that did not load, an exit code without a
 * failed test, and a run of nothing each count as a failure.
 */
export function judgeVitestRun({ report, exitCode, mayBeEmpty }: VitestRun): Verdict {
  const files = report === undefined ? undefined : parseFiles(report);
  if (files === undefined) {
    return { tally: { ...NOTHING, failed: 1 }, remark: `vitest crashed, exit code ${exitCode}` };
  }
  const states = files.flatMap(({ states }) => states);
  const broken = files.filter(({ hasFailed, states }) => hasFailed && !states.includes("failed")).length;
  const passed = states.filter((state) => state === "passed").length;
  const failed = states.filter((state) => state === "failed").length + broken;
  const tally = { passed, failed, skipped: states.length - passed - (failed - broken) };
  if (exitCode !== 0 && failed === 0) {
    return { tally: { ...tally, failed: 1 }, remark: `vitest ended with ${exitCode ?? "a signal"}` };
  }
  if (passed + failed === 0 && !mayBeEmpty) {
    return { tally: { ...tally, failed: 1 }, remark: "no test ran" };
  }
  return { tally, remark: broken === 0 ? "" : `${broken} of the failures: files or hooks` };
}

interface TestFile {
  readonly hasFailed: boolean;
  readonly states: readonly string[];
}

function parseFiles(report: string): readonly TestFile[] | undefined {
  try {
    const results = property(JSON.parse(report), "testResults");
    return Array.isArray(results) ? results.map(parseFile) : undefined;
  } catch {
    return undefined;
  }
}

function parseFile(result: unknown): TestFile {
  const tests = property(result, "assertionResults");
  const states = Array.isArray(tests) ? tests.map((test) => String(property(test, "status"))) : [];
  return { hasFailed: property(result, "status") === "failed", states };
}

function property(value: unknown, name: string): unknown {
  return typeof value === "object" && value !== null ? Reflect.get(value, name) : undefined;
}

/** The outcome of checks, counted. */
/** How many checks passed, failed and were skipped. */
export interface Tally {
  readonly passed: number;
  readonly failed: number;
  readonly skipped: number;
}

export const NOTHING: Tally = { passed: 0, failed: 0, skipped: 0 };

export function addTallies(one: Tally, other: Tally): Tally {
  return {
    passed: one.passed + other.passed,
    failed: one.failed + other.failed,
    skipped: one.skipped + other.skipped,
  };
}

/** The text of the run's last line. */
export function formatTally({ passed, failed, skipped }: Tally): string {
  const counts = `${passed} passed, ${failed} failed`;
  return skipped === 0 ? counts : `${counts}, ${skipped} skipped`;
}

/** How a vitest run ended: its JSON report, if it wrote one, and its exit code, or null if a signal ended it. */
export interface VitestRun {
  readonly report: string | undefined;
  readonly exitCode: number | null;
  /** Whether a run without any test is acceptable. */
  readonly mayBeEmpty: boolean;
}

export interface Verdict {
  readonly tally: Tally;
  /** Failures outside of single tests; empty if there are none. */
  readonly remark: string;
}

/**
 * Counts a vitest run. Four things count as a failure, so that a run is never green by accident: a missing report, a file
 * that did not load, a non-zero exit code without a failed test, and a run without tests.
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

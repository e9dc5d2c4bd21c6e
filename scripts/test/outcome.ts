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

/** A check that is done. */
export interface CheckOutcome {
  readonly kind: "audit" | "static" | "tests";
  readonly tally: Tally;
}

/** Counts a whole run. With filters only tests count as what was asked for, and skipped ones don't: one must have run. */
export function judgeRun(outcomes: readonly CheckOutcome[], filters: readonly string[]): Verdict {
  const sum = (some: readonly CheckOutcome[]) =>
    some.map((one) => one.tally).reduce((total, one) => addTallies(total, one), NOTHING);
  const tally = sum(outcomes);
  const asked = filters.length === 0 ? tally : sum(outcomes.filter(({ kind }) => kind === "tests"));
  if (asked.passed + asked.failed > 0) {
    return { tally, remark: "" };
  }
  const where = filters.length === 0 ? "" : ` in a file that matches ${filters.join(" or ")}`;
  return { tally: { ...tally, failed: tally.failed + 1 }, remark: `no test ran${where}` };
}

/** Whether a pinned server is here, or why not. */
type PinnedServer =
  | { readonly kind: "ready" }
  | { readonly kind: "not_here" | "wrong_pin"; readonly why: string };

/** Undefined if tests can run on the server. They are skipped only if it can't be fetched: a wrong pin is a fault. */
export function judgePinnedServer(server: PinnedServer): Verdict | undefined {
  switch (server.kind) {
    case "ready":
      return undefined;
    case "not_here":
      return {
        tally: { ...NOTHING, skipped: 1 },
        remark: `skipped, because that server can't be had here: ${server.why}`,
      };
    case "wrong_pin":
      return { tally: { ...NOTHING, failed: 1 }, remark: `the pin of that server is wrong: ${server.why}` };
    default:
      return server satisfies never;
  }
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

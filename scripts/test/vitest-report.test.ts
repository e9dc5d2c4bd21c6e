import { describe, expect, it } from "vitest";
import { judgeVitestRun } from "./vitest-report.ts";

function report(files: readonly { status: string; tests: readonly string[] }[]): string {
  return JSON.stringify({
    testResults: files.map(({ status, tests }) => ({
      status,
      assertionResults: tests.map((test) => ({ status: test })),
    })),
  });
}

const GREEN = report([{ status: "passed", tests: ["passed", "passed", "pending", "todo"] }]);
const RED = report([{ status: "failed", tests: ["passed", "failed"] }]);
const EMPTY = report([]);
const UNLOADED = report([
  { status: "failed", tests: [] },
  { status: "passed", tests: ["passed"] },
]);
const BROKEN_HOOK = report([{ status: "failed", tests: ["pending", "pending"] }]);

describe("a vitest run is counted", () => {
  it.each([
    ["green, with skips", GREEN, 0, { passed: 2, failed: 0, skipped: 2 }],
    ["a failed test", RED, 1, { passed: 1, failed: 1, skipped: 0 }],
    ["a file that does not load", UNLOADED, 1, { passed: 1, failed: 1, skipped: 0 }],
    ["a hook that fails, its tests not run", BROKEN_HOOK, 1, { passed: 0, failed: 1, skipped: 2 }],
    ["all green, yet an unhandled error", GREEN, 1, { passed: 2, failed: 1, skipped: 2 }],
    ["all green, yet killed by a signal", GREEN, null, { passed: 2, failed: 1, skipped: 2 }],
    ["no report at all", undefined, 0, { passed: 0, failed: 1, skipped: 0 }],
    ["half a report", GREEN.slice(0, 30), 0, { passed: 0, failed: 1, skipped: 0 }],
    ["a report of another shape", "{}", 0, { passed: 0, failed: 1, skipped: 0 }],
    ["nothing ran", EMPTY, 0, { passed: 0, failed: 1, skipped: 0 }],
  ])("%s", (_name, text, exitCode, tally) => {
    expect(judgeVitestRun({ report: text, exitCode, mayBeEmpty: false }).tally).toEqual(tally);
  });

  it("lets a project be empty that may be", () => {
    const { tally } = judgeVitestRun({ report: EMPTY, exitCode: 0, mayBeEmpty: true });
    expect(tally).toEqual({ passed: 0, failed: 0, skipped: 0 });
  });
});

import { describe, expect, it } from "vitest";
import { addTallies, formatTally, judgePinnedServer, judgeRun, judgeVitestRun, NOTHING } from "./outcome.ts";

describe("the last line", () => {
  it("counts passed and failed tests, and skipped ones only if there are any", () => {
    expect(formatTally({ passed: 3, failed: 0, skipped: 0 })).toBe("3 passed, 0 failed");
    expect(formatTally({ passed: 3, failed: 1, skipped: 2 })).toBe("3 passed, 1 failed, 2 skipped");
  });

  it("is the sum of all checks", () => {
    const one = { passed: 1, failed: 2, skipped: 3 };
    expect(addTallies(addTallies(NOTHING, one), one)).toEqual({ passed: 2, failed: 4, skipped: 6 });
  });
});

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
    ["passed and skipped tests", GREEN, 0, { passed: 2, failed: 0, skipped: 2 }],
    ["a failed test", RED, 1, { passed: 1, failed: 1, skipped: 0 }],
    ["a file that does not load", UNLOADED, 1, { passed: 1, failed: 1, skipped: 0 }],
    ["a failing hook, whose tests did not run", BROKEN_HOOK, 1, { passed: 0, failed: 1, skipped: 2 }],
    ["an unhandled error although all tests passed", GREEN, 1, { passed: 2, failed: 1, skipped: 2 }],
    ["killed by a signal although all tests passed", GREEN, null, { passed: 2, failed: 1, skipped: 2 }],
    ["a missing report", undefined, 0, { passed: 0, failed: 1, skipped: 0 }],
    ["a truncated report", GREEN.slice(0, 30), 0, { passed: 0, failed: 1, skipped: 0 }],
    ["a report of another shape", "{}", 0, { passed: 0, failed: 1, skipped: 0 }],
    ["a run without tests", EMPTY, 0, { passed: 0, failed: 1, skipped: 0 }],
  ])("%s", (_name, text, exitCode, tally) => {
    expect(judgeVitestRun({ report: text, exitCode, mayBeEmpty: false }).tally).toEqual(tally);
  });

  it("accepts an empty project where that is allowed", () => {
    const { tally } = judgeVitestRun({ report: EMPTY, exitCode: 0, mayBeEmpty: true });
    expect(tally).toEqual({ passed: 0, failed: 0, skipped: 0 });
  });
});

describe("a whole run is counted", () => {
  const passed = { passed: 2, failed: 0, skipped: 1 };
  const skipped = { passed: 0, failed: 0, skipped: 2 };
  const failed = { passed: 0, failed: 1, skipped: 0 };

  it.each([
    [
      "tests that passed",
      [
        { kind: "static", tally: passed },
        { kind: "tests", tally: passed },
      ],
      ["one"],
      0,
    ],
    ["a failed test", [{ kind: "tests", tally: failed }], ["one"], 1],
    ["static checks alone, without a filter", [{ kind: "static", tally: passed }], [], 0],
    ["static checks alone, with a filter", [{ kind: "static", tally: passed }], ["one"], 1],
    ["only skipped tests, with a filter", [{ kind: "tests", tally: skipped }], ["one"], 1],
    [
      "only an audit, with a filter",
      [
        { kind: "audit", tally: passed },
        { kind: "tests", tally: NOTHING },
      ],
      ["one"],
      1,
    ],
    ["nothing at all", [], [], 1],
  ] as const)("%s", (_name, outcomes, filters, failures) => {
    expect(judgeRun(outcomes, filters).tally.failed).toBe(failures);
  });

  it("names the filters that no test matched", () => {
    expect(judgeRun([], ["one", "other"]).remark).toBe("no test ran in a file that matches one or other");
  });
});

it.each([
  [{ kind: "ready" }, undefined],
  [
    { kind: "not_here", why: "no network" },
    { passed: 0, failed: 0, skipped: 1 },
  ],
  [
    { kind: "wrong_pin", why: "another hash" },
    { passed: 0, failed: 1, skipped: 0 },
  ],
] as const)("the tests on a pinned server that is %j", (server, tally) => {
  expect(judgePinnedServer(server)?.tally).toEqual(tally);
});

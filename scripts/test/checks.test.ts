import { describe, expect, it } from "vitest";
import { parseOptions, TEST_COMMAND } from "../bootstrap/command-line.mjs";
import { planChecks } from "./checks.ts";

function planned(...args: string[]): readonly string[] {
  const options = parseOptions(TEST_COMMAND, args);
  return options.kind === "run" ? planChecks(options).map(({ name }) => name) : [];
}

describe("what a run consists of", () => {
  it("is everything, in order, without options", () => {
    expect(planned()).toEqual([
      "biome ci",
      "tsc",
      "knip",
      "advisories",
      "unit tests",
      "integration tests",
      "store tests on Redis 6.2",
      "store tests on Valkey 9.1",
      "e2e tests",
    ]);
  });

  it("is one stage with --only", () => {
    expect(planned("--only", "static")).toEqual(["biome ci", "tsc", "knip", "advisories"]);
    expect(planned("--only=e2e", "outage")).toEqual(["e2e tests"]);
  });

  it("must find unit tests, unless a filter is given", () => {
    const mayBeEmpty = (filters: string[]) =>
      planChecks({ stages: ["unit"], filters }).map((check) => check.kind === "tests" && check.mayBeEmpty);
    expect(mayBeEmpty([])).toEqual([false]);
    expect(mayBeEmpty(["ledger"])).toEqual([true]);
  });
});

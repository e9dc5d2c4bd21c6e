import { describe, expect, it } from "vitest";
import { parseTestOptions } from "../bootstrap/command-line.mjs";
import { planChecks } from "./checks.ts";

function planned(...args: string[]): readonly string[] {
  const options = parseTestOptions(args);
  return options.kind === "run" ? planChecks(options).map(({ name }) => name) : [];
}

describe("what a run consists of", () => {
  it("is everything, in order, if nothing is said", () => {
    expect(planned()).toEqual(["biome ci", "tsc", "unit tests", "integration tests", "e2e tests"]);
  });

  it("is one kind with --only", () => {
    expect(planned("--only", "static")).toEqual(["biome ci", "tsc"]);
    expect(planned("--only=e2e", "outage")).toEqual(["e2e tests"]);
  });

  it("must find unit tests unless a filter may match none", () => {
    const mayBeEmpty = (filters: string[]) =>
      planChecks({ stages: ["unit"], filters }).map((check) => check.kind === "tests" && check.mayBeEmpty);
    expect(mayBeEmpty([])).toEqual([false]);
    expect(mayBeEmpty(["ledger"])).toEqual([true]);
  });
});

import { describe, expect, it } from "vitest";
import { BENCH_PARTS } from "./bench-options.mjs";
import { FAULT_NAMES } from "./chaos-options.mjs";
import {
  parseBenchOptions,
  parseChaosOptions,
  parseCommandLine,
  parseObserveOptions,
  parseTestOptions,
} from "./command-line.mjs";

describe("the bootstrap's command line", () => {
  it.each([
    [["start"], "start", []],
    [["start", "--port", "9000", "--no-demo"], "start", ["--port", "9000", "--no-demo"]],
    [["start", "--port=65535"], "start", ["--port=65535"]],
    [["test"], "test", []],
    [["adrelay"], "adrelay", []],
    [["catalog", "lint", "--json"], "catalog", ["lint", "--json"]],
    [["adrelay", "dead", "list", "--help"], "adrelay", ["dead", "list", "--help"]],
    [["test", "--only", "unit", "packages/core"], "test", ["--only", "unit", "packages/core"]],
    [["chaos", "--minutes", "0.5", "--seed", "7"], "chaos", ["--minutes", "0.5", "--seed", "7"]],
  ])("%j is handed on as it is", (words, command, args) => {
    expect(parseCommandLine(words)).toEqual({ kind: "run", command, args });
  });

  it.each([
    [["--help"], "npm start"],
    [["start", "--help"], "--no-demo"],
    [["start", "--port", "9000", "-h"], "--no-demo"],
    [["test", "--help"], "--only static|unit|integration|e2e"],
    [["chaos", "--help"], "--seeds K"],
    [["observe", "--help"], "--keep"],
    [["bench", "--help"], "--growth"],
  ])("%j gets help", (words, text) => {
    expect(parseCommandLine(words)).toEqual({ kind: "help", text: expect.stringContaining(text) });
  });

  it.each([
    [[], "no command given"],
    [["deploy"], "unknown command: deploy"],
    [["start", "--prot", "9000"], "--prot"],
    [["start", "now"], "now"],
    [["start", "--port"], "--port"],
    [["start", "--port", "0"], "from 1 to 65535, not 0"],
    [["start", "--port", "70000"], "not 70000"],
    [["start", "--port", "80x"], "not 80x"],
    [["test", "--only", "smoke"], "static, unit, integration, e2e, not smoke"],
    [["test", "--watch"], "--watch"],
    [["chaos", "--seconds", "0"], "--seconds wants a number"],
    [["chaos", "--seconds", "9", "--minutes", "1"], "not both"],
    [["chaos", "--seed", "x"], "--seed wants a whole number, not x"],
    [["chaos", "--seeds", "0"], "from 1 to 1000, not 0"],
    [["chaos", "--faults", "kill,earthquake"], "--faults knows no earthquake"],
    [["chaos", "now"], "now"],
    [["observe", "--seconds", "5"], "from 15 to 86400, not 5"],
    [["observe", "now"], "now"],
    [["bench", "--only", "intake,speed"], "not speed"],
    [["bench", "--rounds", "0"], "from 1 to 100, not 0"],
    [["bench", "--seconds", "1.5"], "from 1 to 600, not 1.5"],
    [["bench", "--growth", "10,x"], "not 10,x"],
    [["bench", "now"], "now"],
    [["bench", "--rounds", "101"], "from 1 to 100, not 101"],
    [["bench", "--letters", "5"], "--letters"],
  ])("%j is refused, naming what is wrong", (words, why) => {
    expect(parseCommandLine(words)).toMatchObject({ kind: "faulty", why: expect.stringContaining(why) });
  });

  it("runs all faults for a minute unless told else, with the seed that it is given", () => {
    expect(parseChaosOptions([], 42)).toMatchObject({
      durationMs: 60_000,
      seed: 42,
      runs: 1,
      faults: FAULT_NAMES,
      isPlanOnly: false,
    });
    const args = ["--minutes", "2", "--faults", "freeze, kill", "--plan"];
    expect(parseChaosOptions(args)).toMatchObject({
      durationMs: 120_000,
      faults: ["kill", "freeze"],
      isPlanOnly: true,
    });
  });

  it("observes for a minute and ends unless told else", () => {
    expect(parseObserveOptions([])).toEqual({ kind: "run", durationMs: 60_000, isKept: false });
    const args = ["--seconds=20", "--keep"];
    expect(parseObserveOptions(args)).toEqual({ kind: "run", durationMs: 20_000, isKept: true });
  });

  it("measures all parts in five rounds unless told else", () => {
    const defaults = { parts: BENCH_PARTS, rounds: 5, roundMs: 10_000, growth: [100_000, 1_000_000] };
    expect(parseBenchOptions([])).toMatchObject({ ...defaults, isJson: false, isWritten: false });
    const args = ["--only", "delivery,intake", "--rounds=1", "--growth", "20, 10", "--json"];
    const chosen = { parts: ["intake", "delivery"], rounds: 1, growth: [10, 20], isJson: true };
    expect(parseBenchOptions(args)).toMatchObject(chosen);
  });

  it("has all stages in a test run unless one is chosen", () => {
    const stages = ["static", "unit", "integration", "e2e"];
    expect(parseTestOptions([])).toEqual({ kind: "run", stages, filters: [] });
    expect(parseTestOptions(["--only=e2e", "kill"])).toEqual({
      kind: "run",
      stages: ["e2e"],
      filters: ["kill"],
    });
  });
});

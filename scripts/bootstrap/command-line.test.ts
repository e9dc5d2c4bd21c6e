import { describe, expect, it } from "vitest";
import { BENCH_COMMAND, BENCH_PARTS } from "../../bench/options.mjs";
import { CHAOS_COMMAND, FAULT_NAMES } from "../../e2e/chaos/options.mjs";
import { OBSERVE_COMMAND } from "../../e2e/observe/options.mjs";
import { parseCommandLine, parseOptions, START_COMMAND, TEST_COMMAND } from "./command-line.mjs";

describe("the bootstrap's command line", () => {
  it.each([
    [["start"], "start", []],
    [["start", "--port", "9000", "--no-demo"], "start", ["--port", "9000", "--no-demo"]],
    [["start", "--port=65535"], "start", ["--port=65535"]],
    [["test"], "test", []],
    [["adrelay"], "adrelay", []],
    [["catalog", "lint", "--json"], "catalog", ["lint", "--json"]],
    [["rules", "--runbooks", "https://example.com"], "rules", ["--runbooks", "https://example.com"]],
    [["adrelay", "dead", "list", "--help"], "adrelay", ["dead", "list", "--help"]],
    [["test", "--only", "unit", "packages/core"], "test", ["--only", "unit", "packages/core"]],
    [["chaos", "--minutes", "0.5", "--seed", "7"], "chaos", ["--minutes", "0.5", "--seed", "7"]],
  ])("%j is passed on unchanged", (words, command, args) => {
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
    [["soak-client", "--help"], "--down-seconds N"],
  ])("%j prints help", (words, text) => {
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
    [["chaos", "--seconds", "0"], "--seconds must be a number"],
    [["chaos", "--seconds", "9", "--minutes", "1"], "not both"],
    [["chaos", "--seed", "x"], "--seed must be a whole number, not x"],
    [["chaos", "--seeds", "0"], "from 1 to 1000, not 0"],
    [["chaos", "--faults", "kill,earthquake"], "--faults: there is no fault earthquake"],
    [["chaos", "now"], "now"],
    [["chaos", "--only", "gateway"], "relay, turns, not gateway"],
    [["chaos", "--streams", "0"], "from 1 to 1000, not 0"],
    [["observe", "--seconds", "5"], "from 15 to 86400, not 5"],
    [["observe", "now"], "now"],
    [["bench", "--only", "intake,speed"], "not speed"],
    [["bench", "--rounds", "0"], "from 1 to 100, not 0"],
    [["bench", "--seconds", "1.5"], "from 1 to 600, not 1.5"],
    [["bench", "--growth", "10,x"], "not 10,x"],
    [["bench", "now"], "now"],
    [["soak-client", "--ads", "0"], "--ads must be a whole number from 1 to 10000000, not 0"],
    [["bench", "--rounds", "101"], "from 1 to 100, not 101"],
    [["bench", "--letters", "5"], "--letters"],
  ])("%j is refused with a reason", (words, why) => {
    expect(parseCommandLine(words)).toMatchObject({ kind: "faulty", why: expect.stringContaining(why) });
  });

  it("starts on the default port with a demo unless options say otherwise", () => {
    expect(parseOptions(START_COMMAND, [])).toEqual({ kind: "run", port: undefined, hasDemo: true });
    const args = ["--port", "9000", "--no-demo"];
    expect(parseOptions(START_COMMAND, args)).toEqual({ kind: "run", port: 9000, hasDemo: false });
  });

  it("runs all faults for a minute unless options say otherwise, and accepts a seed", () => {
    expect(parseOptions(CHAOS_COMMAND, ["--seed", "42"])).toMatchObject({ seed: 42 });
    expect(parseOptions(CHAOS_COMMAND, [])).toMatchObject({
      durationMs: 60_000,
      seed: undefined,
      runs: 1,
      faults: FAULT_NAMES,
      parts: ["relay", "turns"],
      streams: 50,
      isPlanOnly: false,
    });
    expect(parseOptions(CHAOS_COMMAND, ["--only", "turns"])).toMatchObject({ parts: ["turns"] });
    const args = ["--minutes", "2", "--faults", "freeze, kill", "--plan"];
    expect(parseOptions(CHAOS_COMMAND, args)).toMatchObject({
      parts: ["relay"],
      durationMs: 120_000,
      faults: ["kill", "freeze"],
      isPlanOnly: true,
    });
  });

  it("observes for a minute and ends unless options say otherwise", () => {
    expect(parseOptions(OBSERVE_COMMAND, [])).toEqual({ kind: "run", durationMs: 60_000, isKept: false });
    const args = ["--seconds=20", "--keep"];
    expect(parseOptions(OBSERVE_COMMAND, args)).toEqual({ kind: "run", durationMs: 20_000, isKept: true });
  });

  it("measures all parts in five rounds unless options say otherwise", () => {
    const defaults = { parts: BENCH_PARTS, rounds: 5, roundMs: 10_000, growth: [100_000, 1_000_000] };
    expect(parseOptions(BENCH_COMMAND, [])).toMatchObject({
      ...defaults,
      hasPeers: false,
      isJson: false,
      isWritten: false,
    });
    const args = ["--only", "delivery,intake", "--rounds=1", "--growth", "20, 10", "--peers", "--json"];
    const chosen = {
      parts: ["intake", "delivery"],
      rounds: 1,
      growth: [10, 20],
      hasPeers: true,
      isJson: true,
    };
    expect(parseOptions(BENCH_COMMAND, args)).toMatchObject(chosen);
  });

  it("runs all stages of a test unless one is chosen", () => {
    const stages = ["static", "unit", "integration", "e2e"];
    expect(parseOptions(TEST_COMMAND, [])).toEqual({ kind: "run", stages, filters: [] });
    expect(parseOptions(TEST_COMMAND, ["--only=e2e", "kill"])).toEqual({
      kind: "run",
      stages: ["e2e"],
      filters: ["kill"],
    });
  });
});

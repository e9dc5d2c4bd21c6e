import type { BenchOptions } from "./bench-options.mjs";
import type { ChaosOptions } from "./chaos-options.mjs";
import type { ObserveOptions } from "./observe-options.mjs";

export type TestStage = "static" | "unit" | "integration" | "e2e";

type NotRun = { readonly kind: "help" } | { readonly kind: "faulty"; readonly why: string };

export type CommandLine =
  | {
      readonly kind: "run";
      readonly command: "start" | "test" | "chaos" | "observe" | "bench" | "adrelay" | "pack-cli";
      readonly args: readonly string[];
    }
  | { readonly kind: "help"; readonly text: string }
  | { readonly kind: "faulty"; readonly why: string; readonly text: string };
export type TestOptions =
  | { readonly kind: "run"; readonly stages: readonly TestStage[]; readonly filters: readonly string[] }
  | NotRun;

export declare function parseCommandLine(words: readonly string[]): CommandLine;
export declare function parseTestOptions(args: readonly string[]): TestOptions;
export declare function parseChaosOptions(
  args: readonly string[],
  seedDefault?: number,
): ChaosOptions | NotRun;
export declare function parseObserveOptions(args: readonly string[]): ObserveOptions | NotRun;
export declare function parseBenchOptions(args: readonly string[]): BenchOptions | NotRun;

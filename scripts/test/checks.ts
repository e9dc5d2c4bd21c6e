import type { TestStage } from "../bootstrap/command-line.mjs";

/** One step of the run: a static check, which passes or fails as a whole, or projects of tests. */
export type Check = {
  readonly name: string;
  readonly needsRedis: boolean;
} & (
  | { readonly kind: "static"; readonly program: string; readonly args: readonly string[] }
  | {
      readonly kind: "tests";
      /** Of vitest.config.ts. */
      readonly projects: readonly string[];
      readonly filters: readonly string[];
      readonly mayBeEmpty: boolean;
    }
);

interface Selection {
  readonly stages: readonly TestStage[];
  readonly filters: readonly string[];
}

/** The checks of the chosen stages, in their order. */
export function planChecks({ stages, filters }: Selection): readonly Check[] {
  const hasFilters = filters.length > 0;
  const plan: readonly (Check & { readonly of: TestStage })[] = [
    staticCheck("biome ci", "biome", ["ci", "--error-on-warnings", "."]),
    staticCheck("tsc", "tsc", ["-p", "tsconfig.json"]),
    // There always are unit tests: a run that finds none is a broken one.
    { ...testCheck("unit", filters), needsRedis: false, mayBeEmpty: hasFilters },
    testCheck("integration", filters),
    testCheck("e2e", filters),
  ];
  return plan.filter(({ of }) => stages.includes(of));
}

function staticCheck(name: string, program: string, args: readonly string[]) {
  return { of: "static", kind: "static", name, program, args, needsRedis: false } as const;
}

/** One kind's tests stand in the project of its name, those of e2e that nothing may run beside in another. */
function testCheck(kind: "unit" | "integration" | "e2e", filters: readonly string[]) {
  const projects = kind === "e2e" ? ["e2e", "e2e-alone"] : [kind];
  return {
    of: kind,
    kind: "tests",
    name: `${kind} tests`,
    projects,
    filters,
    needsRedis: true,
    mayBeEmpty: true,
  } as const;
}

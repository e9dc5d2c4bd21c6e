import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";

/** Vitest's own choice leaves one core free, and so one worker on a machine of two: tests wait more than they compute. */
const maxWorkers = Math.max(2, availableParallelism() - 1);

const e2e = { testTimeout: 120_000, hookTimeout: 120_000 };

/** End-to-end tests that hold what they measure to a tight time, or that hurt all they use: nothing runs beside them. */
const ALONE = ["breaker", "chaos", "kill", "long-outage", "outage", "regressions", "shutdown"].map(
  (name) => `e2e/${name}.test.ts`,
);

export default defineConfig({
  test: {
    projects: [
      {
        test: {
          name: "unit",
          include: [
            "packages/*/src/**/*.test.ts",
            "apps/*/src/**/*.test.ts",
            "scripts/**/*.test.ts",
            "bench/**/*.test.ts",
          ],
          maxWorkers,
        },
      },
      {
        test: {
          name: "integration",
          include: ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts", "deploy/**/*.test.ts"],
          testTimeout: 60_000,
          hookTimeout: 60_000,
          maxWorkers,
        },
      },
      {
        // They mostly wait: for processes that start, for locks of killed workers to run out.
        test: {
          ...e2e,
          name: "e2e",
          include: ["e2e/**/*.test.ts"],
          exclude: ALONE,
          maxWorkers: 2,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: { ...e2e, name: "e2e-alone", include: ALONE, fileParallelism: false },
      },
    ],
  },
});

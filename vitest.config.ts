import { availableParallelism } from "node:os";
import { defineConfig } from "vitest/config";
import { SlowFirst } from "./scripts/test/slow-first.ts";

/** Vitest's default leaves one core free: on two cores only one worker. But the tests wait more than they compute. */
const maxWorkers = Math.max(2, availableParallelism() - 1);

/** For tests that start apps. */
const globalSetup = "scripts/test/app-bundles.ts";

/** Each end-to-end file starts processes of its own, and many run several tests at the same time. */
const e2eWorkers = Math.min(3, maxWorkers);

/**
 * A process for each file would load the same modules again and again, for a quarter of the unit tests' time. No file leaves anything
 * behind that others could meet.
 */
const isolate = false;

const integration = { isolate, testTimeout: 60_000, hookTimeout: 60_000, maxWorkers };
const e2e = { isolate, testTimeout: 120_000, hookTimeout: 120_000, globalSetup };

const endToEnd = (...names: readonly string[]) => names.map((name) => `e2e/${name}.test.ts`);

/** End-to-end tests that must run alone: they check tight times, or they disturb everything around them. */
const ALONE = endToEnd("regressions", "shutdown");

/** End-to-end tests that check times or memory too, but mostly wait: two of them find enough of two cores. */
const IN_PAIRS = endToEnd(
  ...["breaker", "chaos", "chaos-turns", "fair-turns", "gateway-memory", "gone-worker", "kill"],
  ...["long-outage", "many-publishers", "outage", "proxy-memory", "worker-memory"],
);

/** End-to-end tests that wait for most of their time, and check no short ones: four of them find enough of two cores. */
const IN_FOURS = endToEnd(
  ...["canaries", "cli-dead-letters", "clock-skew", "documented-errors", "orphaned-turns", "proxy-canaries"],
  ...["redis-tls", "redis-versions", "silent-peers", "tool-loops"],
);

/** The store on the oldest and on the newest supported Redis. `embedded` is the newest one. */
const storeOn = (way: "oldest" | "embedded") => ({
  test: {
    name: `store-${way}`,
    include: ["packages/store/test/**/*.test.ts"],
    env: { ADRELAY_REDIS_SERVER: way, ADRELAY_TEST_REDIS: "local" },
    ...integration,
  },
});

export default defineConfig({
  test: {
    sequence: { sequencer: SlowFirst },
    projects: [
      {
        test: {
          name: "unit",
          include: [
            "packages/*/src/**/*.test.ts",
            "apps/*/src/**/*.test.ts",
            "scripts/**/*.test.ts",
            "ad-model/**/*.test.ts",
            "bench/**/*.test.ts",
            "openapi/**/*.test.ts",
          ],
          isolate,
          // Some judge thousands of texts, beside other tests on the same cores.
          testTimeout: 20_000,
          maxWorkers,
        },
      },
      {
        test: {
          name: "integration",
          include: ["packages/*/test/**/*.test.ts", "apps/*/test/**/*.test.ts", "deploy/**/*.test.ts"],
          ...integration,
          globalSetup,
        },
      },
      storeOn("oldest"),
      storeOn("embedded"),
      {
        // They mostly wait: for processes to start, for locks of killed workers to expire.
        test: {
          ...e2e,
          name: "e2e",
          include: ["e2e/**/*.test.ts", "examples/**/*.test.ts"],
          exclude: [...ALONE, ...IN_PAIRS, ...IN_FOURS],
          maxWorkers: e2eWorkers,
          // Some files run their own tests at the same time, each with a stack of processes.
          maxConcurrency: 3,
          sequence: { groupOrder: 1 },
        },
      },
      {
        test: {
          ...e2e,
          name: "e2e-in-fours",
          include: IN_FOURS,
          maxWorkers: 4,
          maxConcurrency: 3,
          sequence: { groupOrder: 2 },
        },
      },
      {
        test: {
          ...e2e,
          name: "e2e-in-pairs",
          include: IN_PAIRS,
          maxWorkers: 2,
          maxConcurrency: 5,
          sequence: { groupOrder: 3 },
        },
      },
      {
        test: {
          ...e2e,
          isolate: true,
          name: "e2e-alone",
          include: ALONE,
          fileParallelism: false,
          maxConcurrency: 5,
        },
      },
    ],
  },
});

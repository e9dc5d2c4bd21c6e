/** The worker's background jobs keep the contract of start and stop. Its deliveries are tested in the store. */
import { Lifecycle } from "@adrelay/service-kit";
import { pause } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import { pino } from "pino";
import { startBackgroundJobs } from "../src/background-jobs.ts";

const log = pino({ level: "silent" });

const NO_REWRITES = { sinceMs: undefined, finishedMs: undefined, intervalMs: 0, isDenied: false };

startStopSuite(
  "the worker's background jobs",
  () => {
    const lifecycle = new Lifecycle(log);
    let runs = 0;
    const run = async () => {
      runs += 1;
    };
    const parts = {
      settings: { SWEEP_INTERVAL_MS: 1, DEAD_LETTER_RETENTION: 1, AOF_REWRITE_INTERVAL: 0 },
      log,
      lifecycle,
      maintenance: {
        sweep: run,
        reconcile: run,
        promoteOverdue: run,
        returnJobs: run,
        runBulkChanges: async () => false,
      },
      rewrites: { runRound: run, request: run, load: async () => NO_REWRITES },
      metrics: { reportRewrites: () => {} },
      breakers: { release: run },
    };
    return {
      start: () => startBackgroundJobs(parts),
      stop: () => lifecycle.stop(1000),
      isRunning: async () => {
        const before = runs;
        await pause(20);
        return runs > before;
      },
    };
  },
  { isRunning: (part) => part.isRunning() },
);

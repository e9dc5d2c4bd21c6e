import { atMostEvery, type Lifecycle, Periodic } from "@adrelay/service-kit";
import type { Store } from "@adrelay/store";
import type { Logger } from "pino";
import type { CircuitBreakers } from "./circuit-breakers.ts";
import type { WorkerSettings } from "./config.ts";
import type { WorkerMetrics } from "./worker-metrics.ts";

interface BackgroundParts {
  readonly settings: Pick<
    WorkerSettings,
    "SWEEP_INTERVAL_MS" | "DEAD_LETTER_RETENTION" | "AOF_REWRITE_INTERVAL"
  >;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly maintenance: Store["maintenance"];
  readonly rewrites: Store["rewrites"];
  readonly metrics: Pick<WorkerMetrics, "reportRewrites">;
  readonly breakers: Pick<CircuitBreakers, "release">;
}

const RELEASE_INTERVAL_MS = 100;
const RECONCILE_INTERVAL_MS = 1000;
const OVERDUE_INTERVAL_MS = 1000;
const RETURN_JOBS_INTERVAL_MS = 500;
const REWRITE_INTERVAL_MS = 1000;
/** The pause after a round of bulk replays and bulk discards in which one ran, and after one in which none did. */
const REPLAY_BUSY_PAUSE_MS = 100;
const REPLAY_IDLE_PAUSE_MS = 1000;
const LOG_AGAIN_MS = 30_000;

/** Starts what a worker does besides deliveries. Each job is safe to run in many workers at the same time. */
export async function startBackgroundJobs(parts: BackgroundParts): Promise<void> {
  const { settings, log, lifecycle, maintenance, rewrites, metrics, breakers } = parts;
  const jobs: readonly BackgroundJob[] = [
    {
      name: "sweep",
      task: () => maintenance.sweep(settings.DEAD_LETTER_RETENTION),
      intervalMs: settings.SWEEP_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "sweep_failed", err }),
    },
    {
      name: "replay",
      task: async () => ((await maintenance.runBulkChanges()) ? REPLAY_BUSY_PAUSE_MS : REPLAY_IDLE_PAUSE_MS),
      intervalMs: REPLAY_IDLE_PAUSE_MS,
      onFailure: (err) => log.warn({ event: "replay_failed", err }),
    },
    {
      name: "reconcile",
      task: () => maintenance.reconcile(),
      intervalMs: RECONCILE_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "reconcile_failed", err }),
    },
    {
      name: "overdue",
      task: () => maintenance.promoteOverdue(),
      intervalMs: OVERDUE_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "overdue_failed", err }),
    },
    {
      name: "return_jobs",
      task: () => maintenance.returnJobs(),
      intervalMs: RETURN_JOBS_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "return_jobs_failed", err }),
    },
    {
      name: "rewrite",
      task: async () => {
        await rewrites.runRound(settings.AOF_REWRITE_INTERVAL);
        metrics.reportRewrites(await rewrites.load());
      },
      intervalMs: REWRITE_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "rewrite_postponed", err }),
    },
    {
      name: "release",
      task: () => breakers.release(),
      intervalMs: RELEASE_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "release_failed", err }),
    },
  ];
  for (const { name, task, intervalMs, onFailure } of jobs) {
    await lifecycle.start(name, new Periodic(task, intervalMs, atMostEvery(LOG_AGAIN_MS, onFailure)));
  }
}

interface BackgroundJob {
  readonly name: string;
  /** A number is the pause until the next run, in milliseconds. */
  task(): Promise<unknown>;
  readonly intervalMs: number;
  onFailure(error: unknown): void;
}

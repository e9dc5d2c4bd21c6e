import type { DeadLetters, Ledger, Replays } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import { type Lifecycle, Periodic } from "@adrelay/service-kit";
import type { Logger } from "pino";
import type { WorkerSettings } from "../config.ts";
import { bringBackOverdue } from "./overdue/overdue.ts";
import { makeReconcile } from "./reconcile/reconcile.ts";
import { IDLE_PAUSE_MS, replayOnce } from "./replay/replay.ts";
import { makeSweep } from "./sweep/sweep.ts";

interface JobParts {
  readonly settings: WorkerSettings;
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly ledger: Ledger;
  readonly deadLetters: DeadLetters;
  readonly queue: DeliveryQueue;
  readonly replays: Replays;
  /** Brings back from the queue's delay what may go out now. */
  release(): Promise<void>;
}

/** How often the gates are looked at. */
const RELEASE_INTERVAL_MS = 100;
const RECONCILE_INTERVAL_MS = 1000;
const OVERDUE_INTERVAL_MS = 1000;
const LOG_AGAIN_MS = 30_000;

/** Starts what a worker does besides deliveries, again and again; each is safe to run in many workers at once. */
export function startJobs({ settings, log, lifecycle, release, ...parts }: JobParts): void {
  const isStopping = () => lifecycle.isStopping;
  const deadLetterRetentionMs = settings.DEAD_LETTER_RETENTION;
  const sweep = makeSweep({ ...parts, log, deadLetterRetentionMs, isStopping });
  const reconcile = makeReconcile({ ...parts, log });
  const jobs: readonly PeriodicJob[] = [
    {
      name: "sweep",
      task: sweep,
      intervalMs: settings.SWEEP_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "sweep_failed", err }),
    },
    {
      name: "replay",
      task: () => replayOnce({ ...parts, log, isStopping }),
      intervalMs: IDLE_PAUSE_MS,
      onFailure: (err) => log.warn({ event: "replay_failed", err }),
    },
    {
      name: "reconcile",
      task: reconcile,
      intervalMs: RECONCILE_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "reconcile_failed", err }),
    },
    {
      name: "overdue",
      task: () => bringBackOverdue(parts),
      intervalMs: OVERDUE_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "overdue_failed", err }),
    },
    {
      name: "release",
      task: release,
      intervalMs: RELEASE_INTERVAL_MS,
      onFailure: (err) => log.warn({ event: "release_failed", err }),
    },
  ];
  for (const job of jobs) {
    run(lifecycle, job);
  }
}

interface PeriodicJob {
  readonly name: string;
  task(): Promise<unknown>;
  readonly intervalMs: number;
  onFailure(error: unknown): void;
}

function run(lifecycle: Lifecycle, { name, task, intervalMs, onFailure }: PeriodicJob): void {
  const periodic = new Periodic(task, intervalMs, onceInAWhile(onFailure));
  lifecycle.onStop(name, () => periodic.stop());
  periodic.start();
}

/** Tells of a failure that repeats itself, as many a second while Redis is away, once in a while only. */
function onceInAWhile(tell: (error: unknown) => void): (error: unknown) => void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (error) => {
    if (performance.now() - toldAtMs > LOG_AGAIN_MS) {
      toldAtMs = performance.now();
      tell(error);
    }
  };
}

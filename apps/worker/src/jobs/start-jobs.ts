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
  const run = (name: string, task: () => Promise<unknown>, intervalMs: number) => {
    const periodic = new Periodic(task, intervalMs, logFirst(log, `${name}_failed`));
    lifecycle.onStop(name, () => periodic.stop());
    periodic.start();
  };
  run("sweep", sweep, settings.SWEEP_INTERVAL_MS);
  run("replay", () => replayOnce({ ...parts, log, isStopping }), IDLE_PAUSE_MS);
  run("reconcile", reconcile, RECONCILE_INTERVAL_MS);
  run("overdue", () => bringBackOverdue(parts), OVERDUE_INTERVAL_MS);
  run("release", release, RELEASE_INTERVAL_MS);
}

/** Logs a failure that repeats itself, as many a second while Redis is away, once in a while only. */
function logFirst(log: Logger, event: string): (err: unknown) => void {
  let toldAtMs = Number.NEGATIVE_INFINITY;
  return (err) => {
    if (performance.now() - toldAtMs > LOG_AGAIN_MS) {
      toldAtMs = performance.now();
      log.warn({ event, err });
    }
  };
}

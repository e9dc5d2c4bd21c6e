import type { Logger } from "pino";
import type { Lifecycle } from "./lifecycle.ts";

/** What a service's composition gives back once every part runs. */
export interface RunnableService {
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  readonly shutdownTimeoutMs: number;
  /** Fields of the line that says it is ready: its ports above all. */
  readonly listening: Readonly<Record<string, number>>;
}

const FLUSH_TIMEOUT_MS = 500;

/**
 * Runs until SIGTERM, SIGINT or the end of the parent that holds our IPC channel, then stops everything
 * and exits: 0 after a stop, 1 after a fault nobody caught. The process ends a second after the deadline
 * at the latest, whatever still hangs.
 */
export function runService({ log, lifecycle, shutdownTimeoutMs, listening }: RunnableService): void {
  const stop = (reason: string, exitCode: number) => {
    if (lifecycle.isStopping) {
      return;
    }
    log.info({ event: "stopping", reason });
    setTimeout(() => process.exit(exitCode), shutdownTimeoutMs + 1000).unref();
    void lifecycle.stop(shutdownTimeoutMs).then(() => {
      log.info({ event: "stopped" });
      // A reader that is gone or has stopped reading never takes the last lines.
      setTimeout(() => process.exit(exitCode), FLUSH_TIMEOUT_MS);
      log.flush(() => process.exit(exitCode));
    });
  };
  process.on("SIGTERM", () => stop("SIGTERM", 0));
  process.on("SIGINT", () => stop("SIGINT", 0));
  process.on("disconnect", () => stop("parent_gone", 0));
  process.on("uncaughtException", (err) => {
    log.fatal({ event: "uncaught_exception", err });
    stop("uncaught_exception", 1);
  });
  process.on("unhandledRejection", (err) => {
    log.fatal({ event: "unhandled_rejection", err });
    stop("unhandled_rejection", 1);
  });
  // Ready only now: whoever reads this may send a signal at once.
  log.info({ event: "listening", ...listening });
  if (process.send !== undefined && !process.connected) {
    // It went while we started, when nobody listened for that yet.
    stop("parent_gone", 0);
    return;
  }
  // Tells a supervisor that it runs, whatever the log level is.
  process.send?.({ event: "listening" });
}

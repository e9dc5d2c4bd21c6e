/** How a process starts its service, runs it until a signal comes, and exits. */
import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import type { FieldFault } from "@adrelay/contract";
import type { Logger } from "pino";
import manifest from "../package.json" with { type: "json" };
import { CannotStartError, type Lifecycle } from "./lifecycle.ts";
import type { MisspeltName } from "./setting-names.ts";
import { type ConfigResult, describeFaults } from "./settings.ts";

/** The version of Adrelay. All of its packages have the same version. */
export const ADRELAY_VERSION: string = manifest.version;

/** What distinguishes this process from others of its kind. */
export function describeProcess() {
  return { host: hostname(), pid: process.pid, version: ADRELAY_VERSION, startedAtMs: Date.now() } as const;
}

/** A service whose parts all run. */
export interface RunnableService {
  readonly log: Logger;
  readonly lifecycle: Lifecycle;
  /**
   * How long the service runs on after a signal, while readiness already fails. It is there for balancers, which need a
   * moment to notice. Other stops have no such delay.
   */
  readonly shutdownDelayMs?: number;
  readonly shutdownTimeoutMs: number;
  /**
   * What happens between that delay and the stop, such as the end of long answers; absent if there is nothing. When the
   * signal fires, it must end soon. It never rejects.
   */
  drain?(signal: AbortSignal): Promise<void>;
  /** Fields of the log line that says that the service is ready, such as its ports. */
  readonly listening: Readonly<Record<string, number>>;
  /** Reads again what the service has loaded from files, on SIGHUP; absent if there is nothing. */
  onHangUp?(): void;
}

/** How a service is made from its settings. */
export interface StartOptions<Config> {
  readonly name: string;
  readonly loaded: ConfigResult<Config>;
  /** Variables that were probably meant to be settings. */
  readonly misspelt: readonly MisspeltName[];
  compose(config: Readonly<Config>): Promise<RunnableService>;
}

const EXIT_OK = 0;
const EXIT_FAULT = 1;
/** The settings can't be used; nothing was started. */
const EXIT_FAULTY_SETTINGS = 2;

/**
 * Starts a service and runs it until a signal stops it. The process exits with 2 if the settings are faulty,
 * with 1 if a part can't start or after an error that nobody caught, also during a stop, and with 0 after any other stop.
 */
export async function startService<Config>({
  name,
  loaded,
  misspelt,
  compose,
}: StartOptions<Config>): Promise<void> {
  if (loaded.kind === "faulty") {
    const faults = [...loaded.faults, ...misspelt.map(describeMisspelt)];
    process.stderr.write(`${name}: these settings can't be used\n${describeFaults(faults)}\n`);
    process.exit(EXIT_FAULTY_SETTINGS);
  }
  // Before the service runs there is nothing to drain.
  const exit = () => process.exit(EXIT_OK);
  process.on("SIGTERM", exit).on("SIGINT", exit).on("disconnect", exit);
  const onHangUp = process.stdout.isTTY ? exit : () => {};
  process.on("SIGHUP", onHangUp);
  try {
    const service = await compose(loaded.config);
    process.off("SIGTERM", exit).off("SIGINT", exit).off("disconnect", exit);
    process.off("SIGHUP", onHangUp);
    for (const { name: unknown, nearest } of misspelt) {
      service.log.warn({ event: "setting_unknown", name: unknown, nearest });
    }
    runService(service);
  } catch (error) {
    process.stderr.write(`${name}: ${describeFailure(error)}\n`);
    process.exit(EXIT_FAULT);
  }
}

function describeMisspelt({ name, nearest }: MisspeltName): FieldFault {
  return { path: name, message: `is no setting: is ${nearest} meant?` };
}

function describeFailure(error: unknown): string {
  if (error instanceof CannotStartError) {
    return error.message;
  }
  return error instanceof Error ? (error.stack ?? error.message) : String(error);
}

/** Runs until SIGTERM, SIGINT, an uncaught error, or the end of the parent process that holds our IPC channel. */
function runService(service: RunnableService): void {
  const { log, listening, shutdownDelayMs = 0 } = service;
  const stop = makeStop(service);
  process.on("SIGTERM", () => stop({ reason: "SIGTERM", delayMs: shutdownDelayMs }));
  process.on("SIGINT", () => stop({ reason: "SIGINT", delayMs: shutdownDelayMs }));
  process.on("SIGHUP", makeOnHangUp(service, stop));
  process.on("disconnect", () => stop({ reason: "parent_gone" }));
  process.on("uncaughtException", (err) => {
    log.fatal({ event: "uncaught_exception", err });
    stop({ reason: "uncaught_exception", exitCode: EXIT_FAULT });
  });
  process.on("unhandledRejection", (err) => {
    log.fatal({ event: "unhandled_rejection", err });
    stop({ reason: "unhandled_rejection", exitCode: EXIT_FAULT });
  });
  // Only after the handlers are in place: a reader of this line may send a signal immediately.
  log.info({ event: "listening", ...listening });
  if (process.send !== undefined && !process.connected) {
    // The parent ended while the service started, before "disconnect" had a handler.
    stop({ reason: "parent_gone" });
    return;
  }
  // A supervisor gets this message at any log level.
  process.send?.({ event: "listening" });
}

/** In a terminal, SIGHUP means that the terminal was closed. Anywhere else it means: read your files again. */
function makeOnHangUp(service: RunnableService, stop: ReturnType<typeof makeStop>): () => void {
  return () => {
    if (process.stdout.isTTY) {
      stop({ reason: "SIGHUP" });
    } else if (service.onHangUp === undefined) {
      service.log.info({ event: "nothing_to_reload" });
    } else {
      service.onHangUp();
    }
  };
}

interface StopRequest {
  readonly reason: string;
  readonly delayMs?: number;
  readonly exitCode?: number;
}

/**
 * Makes a function that announces a stop, waits for the delay, drains, stops and exits. A second call ends the waits. The
 * process exits with the highest code of all calls.
 */
function makeStop(service: RunnableService): (request: StopRequest) => void {
  const { log, lifecycle } = service;
  const impatience = new AbortController();
  const exit = { code: EXIT_OK };
  return ({ reason, delayMs = 0, exitCode = EXIT_OK }) => {
    exit.code = Math.max(exit.code, exitCode);
    if (lifecycle.isStopping) {
      impatience.abort();
      return;
    }
    lifecycle.announceStop();
    log.info({ event: "stopping", reason, delay_ms: delayMs });
    void delay(delayMs, undefined, { signal: impatience.signal })
      .catch(() => {})
      // After an error that nobody caught, what runs is no longer sure to end.
      .then(() => (exit.code === EXIT_OK ? service.drain?.(impatience.signal) : undefined))
      .then(() => stopAndExit(service, exit));
  };
}

const FLUSH_TIMEOUT_MS = 500;
/** The process exits this long after its shutdown time limit at the latest, even if a part still hangs. */
const EXIT_GRACE_MS = 1000;

/** Reads the exit code at the end, because it may rise until then. */
function stopAndExit(
  { log, lifecycle, shutdownTimeoutMs }: RunnableService,
  exit: { readonly code: number },
): void {
  setTimeout(() => process.exit(exit.code), shutdownTimeoutMs + EXIT_GRACE_MS).unref();
  void lifecycle.stop(shutdownTimeoutMs).then(() => {
    log.info({ event: "stopped" });
    // If the reader of the log has stopped reading, the flush never ends.
    setTimeout(() => process.exit(exit.code), FLUSH_TIMEOUT_MS);
    log.flush(() => process.exit(exit.code));
  });
}

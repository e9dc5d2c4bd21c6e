/** How the long commands (`npm run bench`, `chaos`, `observe`) begin and end: in the end no process and no file is left. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { stopDescendants } from "@adrelay/dev-servers";
import { environment } from "./environment.ts";

const EXIT_FAILED = 1;
const EXIT_ON = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;
const SIGNAL_WAIT_MS = 300;
/** A process that is just ending may still write into the folder. */
const REMOVE_RETRIES = 5;

/** Ends this process with an exit code. */
export type Leave = (code: number) => Promise<void>;

export interface LongRun {
  /** The command, as its user writes it. */
  readonly name: string;
  /** Resolves to whether it succeeded. It keeps its files in the folder. The signal aborts when the run must end. */
  readonly run: (folder: string, signal: AbortSignal) => Promise<boolean>;
  /** Stops what must be stopped in order, before all child processes are stopped. */
  readonly stopFirst?: () => Promise<void>;
}

/** Runs to the end, then exits: with 0 if it succeeded, with 1 if not, or with the code of a signal. */
export async function longRun({ name, run, stopFirst = async () => {} }: LongRun): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), `adrelay-${name.split(" ").at(-1)}-run-`));
  // All temporary folders of the run, such as Redis' data, are made in this one and removed with it.
  environment["TMPDIR"] = folder;
  const ending = new AbortController();
  const leave = makeLeave(folder, async () => {
    ending.abort();
    await stopFirst();
  });
  leaveOnSignals(name, leave);
  const fail = async (error: unknown) => {
    // Ctrl-C reaches the child processes too. We may notice their end before we receive the signal.
    await wait(SIGNAL_WAIT_MS, undefined, { signal: ending.signal }).catch(() => {});
    // Once the run is ending, failures are expected.
    if (!ending.signal.aborted) {
      console.error(error);
    }
    return false;
  };
  process.on("uncaughtException", (error) => {
    void fail(error).then(() => leave(EXIT_FAILED));
  });
  const isFine = await run(folder, ending.signal).catch(fail);
  await leave(isFine ? 0 : EXIT_FAILED);
}

/**
 * Returns the function that ends the run. It awaits `stopFirst`, stops all descendants of this process (also frozen
 * ones), removes the folder and exits. Only the first call counts: failures while everything stops don't change the
 * exit code.
 */
export function makeLeave(folder: string, stopFirst: () => Promise<void> = async () => {}): Leave {
  let leaving: Promise<void> | undefined;
  const leaveOnce = async (code: number) => {
    // A failure here must not reach the handler of uncaught errors: it leaves, too, and would wait for itself.
    try {
      await stopFirst().catch(() => {});
      await stopDescendants(process.pid);
      rmSync(folder, { recursive: true, force: true, maxRetries: REMOVE_RETRIES });
    } catch (error) {
      console.error(error);
    } finally {
      process.exit(code);
    }
  };
  return (code) => {
    leaving ??= leaveOnce(code);
    return leaving;
  };
}

/**
 * The first signal ends the run; the death of the parent counts as SIGTERM. Later signals are ignored: Ctrl-C in a
 * terminal reaches the whole group, and the bootstrap passes it on to this process once more.
 */
export function leaveOnSignals(name: string, leave: Leave): void {
  let isStopping = false;
  const stopOn = (signal: keyof typeof EXIT_ON) => {
    if (!isStopping) {
      isStopping = true;
      console.error(`\n${name}: stopping (${signal})`);
      void leave(EXIT_ON[signal]);
    }
  };
  for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    process.on(signal, () => stopOn(signal));
  }
  process.on("disconnect", () => stopOn("SIGTERM"));
}

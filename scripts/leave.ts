/** How a run that has a folder and processes of its own ends: with nothing of either left. */
import { rmSync } from "node:fs";
import { stopDescendants } from "./test/process-tree.ts";

/** Ends the run with this exit code. */
export type Leave = (code: number) => Promise<void>;

const EXIT_ON = { SIGINT: 130, SIGTERM: 143, SIGHUP: 129 } as const;

/**
 * Ends what `stopFirst` ends in good order, then everything below this process, frozen or not, removes the folder, and
 * exits. The first call decides the code: what breaks since everything is being ended says nothing.
 */
export function makeLeave(folder: string, stopFirst: () => Promise<void> = async () => {}): Leave {
  let leaving: Promise<void> | undefined;
  const leaveOnce = async (code: number) => {
    await stopFirst().catch(() => {});
    await stopDescendants(process.pid);
    rmSync(folder, { recursive: true, force: true });
    process.exit(code);
  };
  return (code) => {
    leaving ??= leaveOnce(code);
    return leaving;
  };
}

/**
 * The first signal ends the run; a dead parent counts as SIGTERM. What comes after it is no news: Ctrl-C in a terminal
 * reaches the whole group, this process among it, and the bootstrap passes it on as well.
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

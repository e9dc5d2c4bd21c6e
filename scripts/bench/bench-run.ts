/** How a benchmark runs: on a Redis of this machine, in a folder and with processes of its own, of which nothing is left. */
import { mkdtempSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as wait } from "node:timers/promises";
import { provideRedis } from "@adrelay/dev-servers";
import { leaveOnSignals, makeLeave } from "../leave.ts";

export interface BenchRun {
  /** As its user calls it. */
  readonly name: string;
  /** Tells of progress. */
  readonly say: (line: string) => void;
  /** Measures, with what it keeps in this folder; whether all is as it should be. */
  readonly measure: (folder: string) => Promise<boolean>;
}

const EXIT_BROKEN = 1;
const SIGNAL_WAIT_MS = 300;

/** Ends this process: with 0 if all is as it should be, with 1 if not, and as a signal wants it. */
export async function runBenchmark({ name, say, measure }: BenchRun): Promise<void> {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-bench-run-"));
  // All folders of the run, Redis' data among them, go with this one.
  process.env["TMPDIR"] = folder;
  // Its CPU time and memory are those of a process of this machine.
  process.env["ADRELAY_TEST_REDIS"] = "local";
  const ending = new AbortController();
  const leave = makeLeave(folder, async () => ending.abort());
  leaveOnSignals(name, leave);
  const fail = async (error: unknown) => {
    // Ctrl-C reaches the processes of the run too, and that one is gone may be seen before the signal is.
    await wait(SIGNAL_WAIT_MS, undefined, { signal: ending.signal }).catch(() => {});
    // What breaks since everything is being ended says nothing.
    if (!ending.signal.aborted) {
      console.error(error);
    }
    return false;
  };
  process.on("uncaughtException", (error) => {
    void fail(error).then(() => leave(EXIT_BROKEN));
  });
  const isFine = (await provideRedis(say)) && (await measure(folder).catch(fail));
  await leave(isFine ? 0 : EXIT_BROKEN);
}

import { eventually } from "@adrelay/testkit";
import { startStopSuite } from "@adrelay/testkit/start-stop-suite";
import { expect, test, vi } from "vitest";
import { KeptProcess, type RunningProcess } from "./kept-process.ts";

/** A launcher whose processes are in memory, and the processes that run. */
function makeLauncher(launchMs = 0) {
  const running = new Set<number>();
  const ends = new Map<number, (how: string) => void>();
  let launches = 0;
  const launch = async (): Promise<RunningProcess> => {
    launches += 1;
    const pid = launches;
    running.add(pid);
    await new Promise((done) => setTimeout(done, launchMs));
    const { promise: ended, resolve } = Promise.withResolvers<string>();
    const end = (how: string) => {
      running.delete(pid);
      resolve(how);
    };
    ends.set(pid, end);
    return { pid, ended, stop: async () => end("SIGTERM") };
  };
  const lines: string[] = [];
  const keep = () =>
    new KeptProcess({ name: "app", launch, say: (line) => lines.push(line), onRestarted: () => {} });
  return { running, ends, lines, launch, keep };
}

startStopSuite(
  "a process that is kept running",
  () => {
    const { keep, running } = makeLauncher(2);
    const kept = keep();
    return { start: () => kept.start(), stop: () => kept.stop(), running };
  },
  { isRunning: ({ running }) => running.size > 0 },
);

test("a process that ends is launched again, with a line that says so", async () => {
  const { keep, ends, lines } = makeLauncher();
  const kept = keep();
  await kept.start();
  ends.get(1)?.("exit 1");
  await eventually(() => expect(kept.pid).toBe(2));
  expect(lines).toEqual(["app ended (exit 1); starting it again", "app runs again (pid 2)"]);
  await kept.stop();
});

test("a stop between two launches prevents the second one, and leaves no timer", async () => {
  vi.useFakeTimers();
  const { keep, ends, running } = makeLauncher();
  const kept = keep();
  const starting = kept.start();
  await vi.runAllTimersAsync();
  await starting;
  ends.get(1)?.("exit 1");
  await vi.advanceTimersByTimeAsync(1);
  expect(vi.getTimerCount()).toBe(1);
  await kept.stop();
  expect(vi.getTimerCount()).toBe(0);
  expect(running.size).toBe(0);
  vi.useRealTimers();
});

test("a process that runs again is launched once, also if that can't be told", async () => {
  const { ends, lines, running, launch } = makeLauncher();
  const onRestarted = () => {
    throw new TypeError("the disk is full");
  };
  const kept = new KeptProcess({ name: "app", launch, say: (line) => lines.push(line), onRestarted });
  await kept.start();
  ends.get(1)?.("exit 1");
  await eventually(() => expect(lines).toContain("app runs again (pid 2)"));
  expect(lines).toEqual([
    "app ended (exit 1); starting it again",
    "the disk is full",
    "app runs again (pid 2)",
  ]);
  await kept.stop();
  expect(running.size).toBe(0);
});

test("a stop aborts a launch that takes long", async () => {
  const launch = (signal: AbortSignal) =>
    new Promise<RunningProcess>((_, reject) => {
      signal.addEventListener("abort", () => reject(new TypeError("aborted")));
    });
  const kept = new KeptProcess({ name: "app", launch, say: () => {}, onRestarted: () => {} });
  const failing = expect(kept.start()).rejects.toThrow("aborted");
  await kept.stop();
  await failing;
});

test("a start whose launch fails rejects, and its stop resolves", async () => {
  const launch = () => Promise.reject(new TypeError("not here"));
  const kept = new KeptProcess({ name: "app", launch, say: () => {}, onRestarted: () => {} });
  await expect(kept.start()).rejects.toThrow("not here");
  await kept.stop();
});

/** Time in which the process stands still doesn't count for a call's time limit. */
import { type ChildProcess, spawn } from "node:child_process";
import { text } from "node:stream/consumers";
import { fileURLToPath } from "node:url";
import {
  acknowledged,
  type Behaviour,
  pause,
  type ScriptedProvider,
  startScriptedProvider,
} from "@adrelay/testkit";
import { afterEach, beforeEach, expect, onTestFinished, test } from "vitest";
import { RunningClock } from "../src/running-clock.ts";

const CALLER = fileURLToPath(new URL("./stopped-caller.ts", import.meta.url));

let provider: ScriptedProvider;

beforeEach(async () => {
  provider = await startScriptedProvider();
});
afterEach(() => provider.close());

/** A process that makes one call. */
function startCaller(timeoutMs: number): { child: ChildProcess; reply: Promise<unknown> } {
  const child = spawn(process.execPath, [CALLER, provider.url, String(timeoutMs)], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  onTestFinished(() => {
    child.kill("SIGKILL");
  });
  return { child, reply: text(child.stdout).then((output) => JSON.parse(output)) };
}

/** Makes a call, stops the process while its answer is under way, and lets it go on; several times, if there are several stops. */
async function stopDuringCall(call: { answer: Behaviour; timeoutMs: number; stopsMs: readonly number[] }) {
  const { child, reply } = await new Promise<ReturnType<typeof startCaller>>((resolve) => {
    provider.onAcknowledge(() => {
      caller.child.kill("SIGSTOP");
      resolve(caller);
      return call.answer;
    });
    const caller = startCaller(call.timeoutMs);
  });
  for (const stopMs of call.stopsMs) {
    child.kill("SIGSTOP");
    // The stop is the case itself: nothing of the stopped process can be awaited.
    await pause(stopMs);
    child.kill("SIGCONT");
  }
  return reply;
}

test.each([
  ["is stopped for longer than the limit", 400, [1500]],
  ["is stopped several times", 400, [600, 600, 600]],
])("a process that %s reads the answer that waits in its socket", async (_name, timeoutMs, stopsMs) => {
  const reply = await stopDuringCall({ answer: acknowledged(), timeoutMs, stopsMs });
  expect(reply).toMatchObject({ kind: "answered", status: 200 });
});

test("after a stop, a call has the rest of its limit for an answer that comes later", async () => {
  const answer = { kind: "late", delayMs: 2000, answer: acknowledged() } as const;
  const reply = await stopDuringCall({ answer, timeoutMs: 1500, stopsMs: [1700] });
  expect(reply).toMatchObject({ kind: "answered", status: 200 });
});

test("a process that was stopped still ends a call to a provider that hangs", async () => {
  const reply = await stopDuringCall({ answer: { kind: "hang" }, timeoutMs: 300, stopsMs: [600] });
  expect(reply).toMatchObject({ kind: "failed", stage: "after_send", code: "timeout" });
});

/** Blocks the event loop, as a burst of work does. */
function blockEventLoop(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) {}
}

test("a blocked event loop uses up little of a limit, also if it is blocked before the limit's end", async () => {
  const clock = new RunningClock();
  onTestFinished(() => clock.stop());
  const startedAtMs = performance.now();
  const overdue = new Promise<number>((resolve) => {
    clock.startLimit(500, () => resolve(performance.now() - startedAtMs));
  });
  blockEventLoop(450);
  await pause(0);
  blockEventLoop(450);
  expect(await overdue).toBeGreaterThan(450 + 450 + 250);
});

test("a limit that is cancelled never calls back", async () => {
  const clock = new RunningClock();
  onTestFinished(() => clock.stop());
  let calls = 0;
  const cancel = clock.startLimit(20, () => {
    calls += 1;
  });
  cancel();
  cancel();
  await new Promise<void>((resolve) => clock.startLimit(40, resolve));
  expect(calls).toBe(0);
});

import { expect, test, vi } from "vitest";
import { OVERDUE, startDeadline, withDeadline } from "./deadline.ts";

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Blocks the event loop, as a burst of requests on a busy machine does. */
function blockEventLoop(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) {}
}

test("work that does not end in time is overdue", async () => {
  expect(await withDeadline(new Promise(() => {}), 20)).toBe(OVERDUE);
});

test("an answer that arrived while the process was blocked is in time", async () => {
  // Like an answer from a socket: it has arrived after the stall, but is read only after the timers have run.
  const answer = new Promise((resolve) => setImmediate(() => setImmediate(resolve, "answer")));
  const result = withDeadline(answer, 20);
  blockEventLoop(200);
  expect(await result).toBe("answer");
});

test("a blocked process extends a deadline to at most twice its length", async () => {
  const onOverdue = vi.fn();
  startDeadline(100, onOverdue);
  blockEventLoop(400);
  await pause(0);
  expect(onOverdue).not.toHaveBeenCalled();
  blockEventLoop(400);
  await pause(0);
  expect(onOverdue).toHaveBeenCalledOnce();
});

test("a deadline that is cancelled during its extension does not call back", async () => {
  const onOverdue = vi.fn();
  const cancel = startDeadline(60, onOverdue);
  blockEventLoop(200);
  await pause(0);
  cancel();
  cancel();
  await pause(150);
  expect(onOverdue).not.toHaveBeenCalled();
});

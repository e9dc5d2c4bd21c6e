import { expect, test, vi } from "vitest";
import { OVERDUE, startDeadline, withDeadline } from "./with-deadline.ts";

const pause = (ms: number) => new Promise((done) => setTimeout(done, ms));

/** Holds the event loop up, as a burst of requests on a busy machine does. */
function standStill(ms: number): void {
  const untilMs = performance.now() + ms;
  while (performance.now() < untilMs) {}
}

test("work that is not done in time is overdue", async () => {
  expect(await withDeadline(new Promise(() => {}), 20)).toBe(OVERDUE);
});

test("an answer that came while the process stood still is in time", async () => {
  // As an answer from a socket: it is there after the stall, but is read only once the timers have run.
  const answer = new Promise((resolve) => setImmediate(() => setImmediate(resolve, "answer")));
  const result = withDeadline(answer, 20);
  standStill(200);
  expect(await result).toBe("answer");
});

test("standing still extends a deadline at most to its double", async () => {
  const onOverdue = vi.fn();
  startDeadline(100, onOverdue);
  standStill(400);
  await pause(0);
  expect(onOverdue).not.toHaveBeenCalled();
  standStill(400);
  await pause(0);
  expect(onOverdue).toHaveBeenCalledOnce();
});

test("a deadline that was taken off in its extension calls nobody", async () => {
  const onOverdue = vi.fn();
  const takeOff = startDeadline(60, onOverdue);
  standStill(200);
  await pause(0);
  takeOff();
  takeOff();
  await pause(150);
  expect(onOverdue).not.toHaveBeenCalled();
});

/** Stands for "not done in time": the work goes on, its result is dropped. */
export const OVERDUE = Symbol("overdue");

/** A timer this late was held up by the event loop itself, not by whoever it waits for. */
const STALL_MIN_MS = 50;

/**
 * Calls `onOverdue` after `timeoutMs`, unless the deadline is taken off first. Time in which this process itself
 * stood still doesn't count, up to as long again: timers run before sockets are read, so that after a stall every
 * deadline would pass while its answer lies there unread.
 *
 * @returns takes the deadline off; to be called at any time, more than once
 */
export function startDeadline(timeoutMs: number, onOverdue: () => void): () => void {
  let timer: NodeJS.Timeout;
  let graceLeftMs = timeoutMs;
  const arm = (waitMs: number) => {
    const dueAtMs = performance.now() + waitMs;
    timer = setTimeout(() => {
      const lateMs = performance.now() - dueAtMs;
      const graceMs = lateMs < STALL_MIN_MS ? 0 : Math.min(lateMs, graceLeftMs);
      graceLeftMs -= graceMs;
      if (graceMs === 0) {
        onOverdue();
      } else {
        arm(graceMs);
      }
    }, waitMs);
  };
  arm(timeoutMs);
  return () => clearTimeout(timer);
}

/**
 * Waits for work at most `timeoutMs`, as startDeadline counts. For calls that have no signal of their own, such as
 * Redis commands: whether overdue work took effect is unknown. A later rejection is swallowed.
 */
export function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T | typeof OVERDUE> {
  return new Promise((resolve, reject) => {
    const takeOff = startDeadline(timeoutMs, () => resolve(OVERDUE));
    work.then(
      (value) => {
        takeOff();
        resolve(value);
      },
      (error) => {
        takeOff();
        reject(error);
      },
    );
  });
}

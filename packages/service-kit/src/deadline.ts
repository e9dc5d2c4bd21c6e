/** What a deadline yields in place of a result. The work goes on, but its result is dropped. */
export const OVERDUE = Symbol("overdue");

/** If a timer is this late, the event loop was blocked: the delay is not the fault of the work that is awaited. */
const STALL_MIN_MS = 50;

/**
 * Calls `onOverdue` after `timeoutMs`, unless the deadline is cancelled first. Time during which this process was
 * blocked doesn't count, up to `timeoutMs` in all. The reason: after a stall, timers run before sockets are read, so
 * without this every deadline would pass although its answer had arrived and was only waiting to be read.
 *
 * @returns cancels the deadline; may be called at any time, more than once
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
 * Waits for work at most `timeoutMs`, measured as `startDeadline` does. For calls that take no AbortSignal, such as Redis
 * commands: whether overdue work took effect is unknown. If overdue work rejects later, the rejection is swallowed.
 */
export function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T | typeof OVERDUE> {
  return new Promise((resolve, reject) => {
    const cancel = startDeadline(timeoutMs, () => resolve(OVERDUE));
    work.then(
      (value) => {
        cancel();
        resolve(value);
      },
      (error) => {
        cancel();
        reject(error);
      },
    );
  });
}

/** Stands for "not done in time": the work goes on, its result is dropped. */
export const OVERDUE = Symbol("overdue");

/**
 * Waits for work at most `timeoutMs`. For calls that have no signal of their own, such as Redis commands:
 * whether overdue work took effect is unknown. A later rejection is swallowed.
 */
export async function withDeadline<T>(work: Promise<T>, timeoutMs: number): Promise<T | typeof OVERDUE> {
  let timer: NodeJS.Timeout | undefined;
  const overdue = new Promise<typeof OVERDUE>((resolve) => {
    timer = setTimeout(() => resolve(OVERDUE), timeoutMs);
  });
  work.catch(() => {});
  try {
    return await Promise.race([work, overdue]);
  } finally {
    clearTimeout(timer);
  }
}

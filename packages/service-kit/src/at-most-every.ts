/**
 * Passes what repeats on at most once per interval, and drops the rest. For failures that come again and again for one
 * reason, so that the log isn't full of them.
 */
export function atMostEvery<T>(intervalMs: number, report: (value: T) => void): (value: T) => void {
  let reportedAtMs = Number.NEGATIVE_INFINITY;
  return (value) => {
    const nowMs = performance.now();
    if (nowMs - reportedAtMs >= intervalMs) {
      reportedAtMs = nowMs;
      report(value);
    }
  };
}

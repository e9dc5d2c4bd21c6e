/**
 * Loaded into an app before its own modules (`--import`). Every few milliseconds it writes a log line with the longest time
 * for which one turn of the event loop computed. It is the time of the thread's processor: other processes of a busy machine
 * don't count.
 */
const REPORT_INTERVAL_MS = 25;

const computedMs = () => {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1000;
};

let lastComputedMs = computedMs();
let reportedAtMs = performance.now();
let maxMs = 0;

setInterval(() => {
  const nowComputedMs = computedMs();
  maxMs = Math.max(maxMs, nowComputedMs - lastComputedMs);
  lastComputedMs = nowComputedMs;
  if (performance.now() - reportedAtMs >= REPORT_INTERVAL_MS) {
    process.stdout.write(`${JSON.stringify({ event: "loop_delay", max_ms: maxMs })}\n`);
    reportedAtMs = performance.now();
    maxMs = 0;
  }
}, 1).unref();

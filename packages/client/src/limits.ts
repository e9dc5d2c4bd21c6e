/** Limits of time, on web-standard timers. */

/** The outcome of `untilLimit` when the time was up. */
export const OVERDUE = Symbol();
/** The outcome of `untilLimit` when the signal fired first. */
export const ABORTED = Symbol();

/** Waits for a promise, but no longer than the limit, and only until the signal fires. The promise runs on. */
export function untilLimit<T>(
  promise: Promise<T>,
  limitMs: number,
  signal?: AbortSignal | undefined,
): Promise<T | typeof OVERDUE | typeof ABORTED> {
  const limit = withResolver<typeof OVERDUE | typeof ABORTED>();
  const stopTimer = startTimer(limitMs, () => limit.resolve(OVERDUE));
  const stopListening = onAbort(signal, () => limit.resolve(ABORTED));
  return Promise.race([promise, limit.promise]).finally(() => {
    stopTimer();
    stopListening();
  });
}

/** Calls back when the signal fires, at once if it has. Gives back what ends the listening. */
export function onAbort(signal: AbortSignal | undefined, call: () => void): () => void {
  if (signal?.aborted) {
    call();
  } else {
    signal?.addEventListener("abort", call);
  }
  return () => signal?.removeEventListener("abort", call);
}

/** `isIdle`: the timer doesn't keep a process alive, where the runtime can tell. */
export function startTimer(delayMs: number, onTime: () => void, isIdle = false): () => void {
  const timer: unknown = setTimeout(onTime, Math.max(0, Math.min(delayMs, TIMER_MAX_MS)));
  if (isIdle) {
    // Node's, Bun's and Deno's own. Elsewhere a timer is a number and keeps nothing alive.
    Object(timer).unref?.();
  }
  // Both forms are what this runtime's clearTimeout takes.
  return () => clearTimeout(timer as ReturnType<typeof setTimeout>);
}

/** The longest delay of a timer: a longer one fires at once. */
const TIMER_MAX_MS = 2_147_483_647;

/** A promise with what resolves it. */
export interface Pending<T> {
  readonly promise: Promise<T>;
  readonly resolve: (value: T) => void;
}

/** Promise.withResolvers, which Node 18 and 20 lack. */
export function withResolver<T>(): Pending<T> {
  let resolve: (value: T) => void = () => {};
  const promise = new Promise<T>((take) => {
    resolve = take;
  });
  return { promise, resolve };
}

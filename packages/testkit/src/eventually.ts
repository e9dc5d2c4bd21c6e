/** Tries a check again until it passes; after `timeoutMs` the last failure stands. The one way to wait in tests. */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 5000): Promise<T> {
  const deadlineMs = performance.now() + timeoutMs;
  for (;;) {
    try {
      return await check();
    } catch (error) {
      if (performance.now() > deadlineMs) {
        throw error;
      }
      await pause(20);
    }
  }
}

/** The one bare wait of the test suite: for what has no signal to wait for. */
export function pause(durationMs: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, durationMs));
}

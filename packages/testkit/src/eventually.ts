/**
 * Tries a check again until it passes; after `timeoutMs` the last failure stands. The one way to wait in tests. The
 * default is the patience that a loaded machine needs: a test that means a time says it.
 */
export async function eventually<T>(check: () => T | Promise<T>, timeoutMs = 20_000): Promise<T> {
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

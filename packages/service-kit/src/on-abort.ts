/** Calls back once when the signal fires; at once if it has fired. Without a signal it never does. */
export function onAbort(signal: AbortSignal | undefined, callBack: () => void): void {
  if (signal?.aborted === true) {
    callBack();
  } else {
    signal?.addEventListener("abort", callBack, { once: true });
  }
}

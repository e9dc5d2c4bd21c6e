/** The result of a call; undefined if it throws. Hooks of the program may throw, and that must never reach the chat. */
export function tryCall<Value>(call: () => Value): Value | undefined {
  try {
    return call();
  } catch {
    return undefined;
  }
}

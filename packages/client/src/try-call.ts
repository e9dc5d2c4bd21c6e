/**
 * The result of a call; undefined if it throws. Hooks of the program may throw, or reject if they are async, and that must never
 * reach the chat.
 */
export function tryCall<Value>(call: () => Value): Value | undefined {
  try {
    const value = call();
    Promise.resolve(value).catch(() => {});
    return value;
  } catch {
    return undefined;
  }
}

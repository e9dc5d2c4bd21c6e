/** A service can't start for a reason that an operator can mend: the message says all, and no stack is shown. */
export class CannotStartError extends Error {
  override readonly name: string = "CannotStartError";
}

/** A part of the local stack can't be started. The message says why, and is all that the user needs. */
export class PartError extends Error {
  override readonly name = "PartError";
}

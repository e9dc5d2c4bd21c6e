/** A failure that is told in words to a person, without a stack. */
export class BootstrapError extends Error {
  /** @param {string} message @param {number} [exitCode] */
  constructor(message, exitCode) {
    super(message);
    this.name = "BootstrapError";
    this.exitCode = exitCode;
  }
}

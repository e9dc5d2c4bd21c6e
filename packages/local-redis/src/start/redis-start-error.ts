/** port_taken: another program has it; dir_in_use: a server runs on that data folder already. */
export type RedisStartErrorCode = "port_taken" | "dir_in_use" | "ended" | "no_answer" | "aborted";

/** A server that did not start; the message says why, with its last log lines. */
export class RedisStartError extends Error {
  override readonly name = "RedisStartError";
  readonly code: RedisStartErrorCode;

  constructor(code: RedisStartErrorCode, message: string) {
    super(message);
    this.code = code;
  }
}

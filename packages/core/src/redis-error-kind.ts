/** What an error reply of Redis means. Redis names the kind of the error in its first word. */
export type RedisErrorKind =
  /** The server doesn't hold the script: it was restarted or flushed. Send the source. */
  | "no_script"
  /** The server accepts no writes now: it is full, a replica, short of replicas, loading, or busy with a script. */
  | "refuses_writes"
  /** The ACL of our user forbids this command, key or channel. */
  | "no_permission"
  /** The server doesn't know this command: a managed service may have removed it. */
  | "unknown_command"
  /** Anything else, also an error of the connection. */
  | "other";

const KIND_BY_FIRST_WORD: Readonly<Record<string, RedisErrorKind>> = {
  NOSCRIPT: "no_script",
  BUSY: "refuses_writes",
  LOADING: "refuses_writes",
  MASTERDOWN: "refuses_writes",
  MISCONF: "refuses_writes",
  NOREPLICAS: "refuses_writes",
  OOM: "refuses_writes",
  READONLY: "refuses_writes",
  NOPERM: "no_permission",
};

/** Redis before version 7 puts the script and the line before the error of a command that the script ran. */
const PLACE_IN_SCRIPT = /^(?:ERR Error running script .*)?@user_script: ?\d+: -?/;

/** Classifies an error by its message. No other code of ours reads the message of a Redis error to decide. */
export function redisErrorKind(error: unknown): RedisErrorKind {
  if (!(error instanceof Error)) {
    return "other";
  }
  const message = error.message.replace(PLACE_IN_SCRIPT, "").replace(/^-/, "");
  if (message.startsWith("ERR unknown command")) {
    return "unknown_command";
  }
  return KIND_BY_FIRST_WORD[message.split(" ", 1)[0] ?? ""] ?? "other";
}

/** What an error reply of Redis means. Redis names the kind of the error in its first word. */
export type RedisErrorKind =
  /** The server doesn't hold the script: it was restarted or flushed. Send the source. */
  | "no_script"
  /**
   * The server accepts no writes now: it is full, a replica, short of replicas, loading, busy with a script, or a node
   * of a cluster that doesn't hold our keys.
   */
  | "refuses_writes"
  /** The ACL of our user forbids this command, key or channel. */
  | "no_permission"
  /** The server doesn't know this command: a managed service may have removed it. */
  | "unknown_command"
  /** Anything else, also an error of the connection. */
  | "other";

const KIND_BY_FIRST_WORD: Readonly<Record<string, RedisErrorKind>> = {
  NOSCRIPT: "no_script",
  ASK: "refuses_writes",
  BUSY: "refuses_writes",
  CLUSTERDOWN: "refuses_writes",
  LOADING: "refuses_writes",
  MASTERDOWN: "refuses_writes",
  MISCONF: "refuses_writes",
  MOVED: "refuses_writes",
  NOREPLICAS: "refuses_writes",
  OOM: "refuses_writes",
  READONLY: "refuses_writes",
  TRYAGAIN: "refuses_writes",
  NOPERM: "no_permission",
};

/** Redis before version 7 puts the script and the line before the error of a command that the script ran. */
const PLACE_IN_SCRIPT = /^(?:ERR Error running script .*)?@user_script: ?\d+: -?/;
/** A command that a script may not run has no word of its own. The second form is that of Redis before version 7. */
const FORBIDDEN_IN_SCRIPT = /^ERR ACL failure in script: |^(?:ERR )?The user executing the script can't /;
const UNKNOWN_COMMAND = /^ERR (?:unknown command|Unknown Redis command)|^Unknown Redis command/;

/** Classifies an error by its message. Only this file reads the message of a Redis error to decide. */
export function redisErrorKind(error: unknown): RedisErrorKind {
  const message = messageOf(error);
  if (UNKNOWN_COMMAND.test(message)) {
    return "unknown_command";
  }
  return KIND_BY_FIRST_WORD[redisErrorWord(error)] ?? "other";
}

/** Whether Redis can't do for our user what it was asked: the ACL forbids it, or Redis doesn't know the command. */
export function isForbiddenByRedis(error: unknown): boolean {
  const kind = redisErrorKind(error);
  return kind === "no_permission" || kind === "unknown_command";
}

/** The word by which Redis names the kind of an error, such as `READONLY`; empty if it isn't an error reply of Redis. */
export function redisErrorWord(error: unknown): string {
  const message = messageOf(error);
  return FORBIDDEN_IN_SCRIPT.test(message) ? "NOPERM" : (/^[A-Z]+(?= )/.exec(message)?.[0] ?? "");
}

const MOVES_KEYS = "moves the relay's keys to another node of its cluster: wait, or see REDIS_URL";
/** What is wrong with a Redis that replied this error, and what to do, for people. Follows the word "Redis". */
const ADVICE: Readonly<Record<string, string>> = {
  ASK: MOVES_KEYS,
  BUSY: "is busy with a script of somebody else",
  CLUSTERDOWN: "is a node of a cluster that is down",
  LOADING: "still loads its data",
  MASTERDOWN: "is a replica that has lost its primary: REDIS_URL must lead to the primary",
  MISCONF: "can't write its files: see its log and its disk",
  MOVED:
    "is a node of a cluster that doesn't hold the relay's keys: REDIS_URL must lead to the node that holds {adrelay:0}",
  NOAUTH: "wants a password: see REDIS_URL",
  NOREPLICAS: "is in touch with fewer replicas than min-replicas-to-write",
  OOM: "is full: it takes nothing new, and what is queued still goes out. Raise maxmemory",
  READONLY: "is a replica, which takes no writes: REDIS_URL must lead to the primary",
  TRYAGAIN: MOVES_KEYS,
  WRONGPASS: "doesn't accept the user or password of REDIS_URL",
};
const ADVICE_ON_ERR: readonly (readonly [RegExp, string])[] = [
  [/max number of clients/i, "accepts no more connections: raise maxclients, or close some"],
  [
    /DB index is out of range|invalid DB index|SELECT is not allowed in cluster mode/i,
    "doesn't have the database of REDIS_URL (the number after the last slash)",
  ],
];

/** Says what is wrong with a Redis that replied this error, and what to do; undefined if that isn't known. */
export function explainRedisError(error: unknown): string | undefined {
  const word = redisErrorWord(error);
  if (word === "NOPERM") {
    return `doesn't permit what the relay needs (${messageOf(error)}): see the rights in docs/operations.md`;
  }
  const [, advice] = ADVICE_ON_ERR.find(([pattern]) => pattern.test(messageOf(error))) ?? [];
  return advice ?? ADVICE[word];
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message.replace(PLACE_IN_SCRIPT, "").replace(/^-/, "") : "";
}

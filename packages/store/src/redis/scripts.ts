/** Runs Lua scripts and reads their replies. No other file sees the number of a reply code. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import { ENTRY_STATES, type EntryState, redisErrorKind } from "@adrelay/core";
import type { Redis } from "ioredis";

/** A script with its includes, and the SHA-1 by which Redis knows it. */
export interface Script {
  readonly source: string;
  readonly sha: string;
}

export interface ScriptCall {
  readonly keys: readonly string[];
  readonly args: readonly (string | number | Buffer)[];
}

/** Runs a script of this package, such as `intake/accept`, on one connection. Resolves with Redis' reply. */
export type RunScript = (name: string, call: ScriptCall) => Promise<unknown>;

/** Reads the Lua scripts of this package, each one once. */
export class ScriptLibrary {
  readonly #scripts = new Map<string, Script>();

  /** The script `src/<name>.lua`. Throws if there is none. */
  load(name: string): Script {
    const known = this.#scripts.get(name) ?? compose(name, {});
    this.#scripts.set(name, known);
    return known;
  }

  /** A script with includes that are no files of this package: their Lua text by the name of the include. */
  compose(name: string, given: Readonly<Record<string, string>>): Script {
    return compose(name, given);
  }
}

function compose(name: string, given: Readonly<Record<string, string>>): Script {
  const read = (path: string): string =>
    readFileSync(new URL(`../${path}.lua`, import.meta.url), "utf8").replace(
      /^-- @include ([\w/-]+)$/gm,
      (_line, include: string) => given[include] ?? read(include),
    );
  const source = read(name);
  return { source, sha: createHash("sha1").update(source).digest("hex") };
}

/**
 * Runs scripts on one connection.
 *
 * The source of a script is sent once for each connection that is opened, because Redis may have been restarted and know
 * no scripts. If only the hash was sent, Redis would refuse it, and the call would be repeated behind calls that were
 * made later. A call that waits for a connection sends the source, too.
 */
export class ScriptRunner {
  readonly #redis: Redis;
  readonly #library: ScriptLibrary;
  /** Hashes of the scripts whose source was sent since the connection was opened. */
  readonly #sent = new Set<string>();

  constructor(redis: Redis, library: ScriptLibrary) {
    this.#redis = redis;
    this.#library = library;
    redis.on("close", () => this.#sent.clear());
  }

  /** Runs a script of this package by its name. */
  readonly run: RunScript = (name, call) => this.runScript(this.#library.load(name), call);

  /** Runs a script. Rejects with Redis' error, or if the connection ends; the script may have run in the latter case. */
  async runScript({ sha, source }: Script, { keys, args }: ScriptCall): Promise<unknown> {
    const sendSource = () => this.#redis.eval(source, keys.length, ...keys, ...args);
    if (this.#redis.status !== "ready") {
      return sendSource();
    }
    if (!this.#sent.has(sha)) {
      this.#sent.add(sha);
      return sendSource();
    }
    try {
      return await this.#redis.evalsha(sha, keys.length, ...keys, ...args);
    } catch (error) {
      // Redis has forgotten its scripts, or it refused the call that carried the source.
      if (redisErrorKind(error) === "no_script") {
        return sendSource();
      }
      throw error;
    }
  }
}

export const ACCEPT_CODES = {
  1: "accepted",
  2: "accepted_late",
  3: "accepted_unknown",
  4: "repeat",
  5: "conflict",
  6: "not_acknowledgeable",
  7: "other_publisher",
  8: "payload_missing",
  9: "unknown",
  10: "over_quota",
  11: "no_room",
  12: "has_room",
} as const;
export type AcceptCode = (typeof ACCEPT_CODES)[keyof typeof ACCEPT_CODES];

/** `same`: it was booked before, so nothing changed. `illegal`: the entry's state doesn't allow it. */
export const BOOKED_CODES = { 1: "booked", 0: "same", "-1": "illegal" } as const;
export type BookedCode = (typeof BOOKED_CODES)[keyof typeof BOOKED_CODES];

/** Of a replay or a discard. `wrong_state`: the entry's state doesn't allow it. */
export const CHANGE_CODES = {
  1: "booked",
  0: "unknown",
  "-1": "wrong_state",
  "-2": "attempt_under_way",
} as const;
export type ChangeCode = (typeof CHANGE_CODES)[keyof typeof CHANGE_CODES];

/** Of an erasure. `no_text`: nothing was accepted yet, or ever. `erased_before`: a repeat, which changed nothing. */
export const ERASE_CODES = { 0: "unknown", 1: "erased", 2: "erased_before", 3: "no_text" } as const;
export type EraseCode = (typeof ERASE_CODES)[keyof typeof ERASE_CODES];

export const CLAIM_CODES = { 0: "not_now", 1: "closed", 2: "probe", 3: "granted" } as const;
export type ClaimCode = (typeof CLAIM_CODES)[keyof typeof CLAIM_CODES];

export const CANCEL_CODES = { 1: "cancelled", 0: "unknown", "-1": "ended" } as const;
export type CancelCode = (typeof CANCEL_CODES)[keyof typeof CANCEL_CODES];

/** Of the opening of a turn. `known`: the ledger has an entry of this id, which another call made. */
export const OPENED_CODES = { 1: "opened", 0: "known" } as const;

/** Of a turn that is to wait. `bare`: it waits without its prompt. */
export const HELD_CODES = { 1: "held", 0: "ended", 2: "bare" } as const;

/** Of a write to a turn's journal. `behind`: earlier pieces of the step are missing, and nothing was appended. */
export const WRITTEN_CODES = { 1: "alive", 0: "ended", 2: "behind" } as const;

/** Of a step that wants to join a turn. `unknown`: no turn has such a pointer. */
export const JOINED_CODES = { 1: "joined", 0: "ended", 2: "unknown" } as const;

/** Of a step that ended. `running`: another step of its turn has a lease. `behind`: as of a write, and nothing has changed. */
export const ENDED_STEP_CODES = {
  4: "behind",
  3: "overtaken",
  2: "running",
  1: "waiting",
  0: "ended",
} as const;
export type EndedStepCode = (typeof ENDED_STEP_CODES)[keyof typeof ENDED_STEP_CODES];

/**
 * Of the settling of a turn. `ended`: the turn was over before. `changed`: the journal isn't as it was read. `unknown`: the ledger
 * has no entry of the id.
 */
export const SETTLED_CODES = {
  1: "queued",
  0: "ended",
  2: "open",
  3: "changed",
  4: "abandoned",
  5: "unknown",
} as const;
export type SettledCode = (typeof SETTLED_CODES)[keyof typeof SETTLED_CODES];

/** A script replied something that it never replies: this code and the scripts don't belong together. */
export class StoreReplyError extends Error {
  override readonly name = "StoreReplyError";
}

/**
 * Redis refused a command within a script, for example because it is full or a replica. Commands before it took effect.
 * The message is Redis' own, so that `redisErrorKind` can classify it.
 */
export class StoreRefusalError extends Error {
  override readonly name = "StoreRefusalError";
}

/** The meaning of a reply code. Throws a StoreReplyError for a code that the table lacks. */
export function decodeReply<T extends Record<string, string>>(codes: T, reply: unknown): T[keyof T] {
  const code = String(reply);
  if (Object.hasOwn(codes, code)) {
    // The check above shows that it is one of the table's own names.
    return codes[code as keyof T];
  }
  throw new StoreReplyError(`a script replied ${code}`);
}

/** A reply that must be a list. */
export function listOf(reply: unknown): readonly unknown[] {
  if (!Array.isArray(reply)) {
    throw new StoreReplyError("a script replied no list");
  }
  return reply;
}

/** Reads a list of replies, each of which may be an error. An unreadable reply affects no other. */
export function readEach<T>(replies: unknown, read: (reply: unknown, at: number) => T): (T | Error)[] {
  return listOf(replies).map((reply, at) => {
    try {
      return reply instanceof Error ? new StoreRefusalError(reply.message) : read(reply, at);
    } catch (error) {
      return error instanceof Error ? error : new StoreReplyError(String(error));
    }
  });
}

/** Turns [field, value, field, value …] into an object. */
export function fieldsOf(reply: unknown): Record<string, unknown> {
  if (!Array.isArray(reply)) {
    throw new StoreReplyError("a script replied no list of fields");
  }
  const fields: Record<string, unknown> = {};
  for (let at = 0; at + 1 < reply.length; at += 2) {
    fields[String(reply[at])] = reply[at + 1];
  }
  return fields;
}

type StoredState = Exclude<EntryState, "absent">;

const STATES: ReadonlyMap<unknown, StoredState> = new Map(
  ENTRY_STATES.filter((state) => state !== "absent").map((state) => [state, state]),
);

/** A stored state. Throws a StoreReplyError for anything else, as the next two functions do. */
export function stateOf(value: unknown): StoredState {
  return STATES.get(value) ?? unreadable("s");
}

/** A stored text. An empty one means none. */
export function textOf(value: unknown, name: string): string | undefined {
  if (value === undefined || value === "") {
    return undefined;
  }
  return typeof value === "string" ? value : unreadable(name);
}

/** A stored number. */
export function numberOf(value: unknown, name: string): number | undefined {
  if (value === undefined) {
    return undefined;
  }
  const number = Number(value);
  return Number.isFinite(number) ? number : unreadable(name);
}

/** Throws a StoreReplyError that names a field. */
export function unreadable(name: string): never {
  throw new StoreReplyError(`field ${name} of an entry can't be read`);
}

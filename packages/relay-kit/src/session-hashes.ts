/**
 * What an entry keeps of its session: a hash that only this installation can make. It finds all ad responses of a session for
 * an erasure, and tells nothing to whoever reads Redis without the key.
 */
import { hmacOf } from "./hmac.ts";

/** 96 bits: two sessions never meet, and an entry stays small. */
const HASH_CHARS = 16;

/** Hashes the ids of sessions under the installation's keys. */
export class SessionHashes {
  readonly #keys: readonly string[];

  /** @param keys the first one is for new entries; the others find older ones */
  constructor(keys: readonly string[]) {
    this.#keys = keys;
  }

  /** Whether sessions can be found at all. */
  get isOn(): boolean {
    return this.#keys.length > 0;
  }

  /** For a new entry; undefined without a key, or without a session. */
  hash(sessionId: string | undefined): string | undefined {
    const [key] = this.#keys;
    return key === undefined || sessionId === undefined ? undefined : hashUnder(key, sessionId);
  }

  /** All hashes that entries of this session may keep, the newest key's first. */
  all(sessionId: string): string[] {
    return this.#keys.map((key) => hashUnder(key, sessionId));
  }
}

function hashUnder(key: string, sessionId: string): string {
  return hmacOf(key, sessionId).slice(0, HASH_CHARS);
}

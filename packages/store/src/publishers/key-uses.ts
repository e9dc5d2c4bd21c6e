/**
 * When each caller's key was used last, to within a minute, for all gateways.
 *
 * 1. A request only notes its key in memory. What was noted is saved later, each key at most once a minute.
 * 2. What can't be saved is saved later. If a process is killed, its last minute of uses is lost.
 */
import type { Redis } from "ioredis";
import type { StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";

interface KeyUsesParts {
  readonly redis: Redis;
  readonly run: RunScript;
  readonly keys: StoreKeys;
}

/** Enough digits of a key's digest to tell keys apart, and too few to be the digest. */
const DIGITS = 16;
const SAVED_AGAIN_MS = 60_000;
const KEPT_MS = 400 * 86_400_000;
/** Most keys of one call. */
const SAVED_MAX = 500;

/** A key as it is noted here. */
interface DigestedKey {
  readonly digest: string;
}

export class KeyUses {
  readonly #parts: KeyUsesParts;
  readonly #savedAtMs = new Map<string, number>();
  readonly #unsaved = new Set<string>();

  constructor(parts: KeyUsesParts) {
    this.#parts = parts;
  }

  /** Notes that a key is used now. */
  note({ digest }: DigestedKey): void {
    const savedAtMs = this.#savedAtMs.get(digest);
    if (savedAtMs === undefined || performance.now() - savedAtMs >= SAVED_AGAIN_MS) {
      this.#unsaved.add(digest);
    }
  }

  /** Saves what was noted since the last call. Rejects if Redis can't; then the next call saves it. */
  async save(): Promise<void> {
    const digests = [...this.#unsaved].slice(0, SAVED_MAX);
    if (digests.length === 0) {
      return;
    }
    const { run, keys } = this.#parts;
    await run("publishers/save-key-uses", {
      keys: [keys.keyUses],
      args: [KEPT_MS, ...digests.map(nameOf)],
    });
    const nowMs = performance.now();
    for (const digest of digests) {
      this.#unsaved.delete(digest);
      this.#savedAtMs.set(digest, nowMs);
    }
  }

  /** The time of the latest use of a key, by Redis' clock; undefined for a key without one in the last 400 days. */
  async load(): Promise<(key: DigestedKey) => number | undefined> {
    const { redis, keys } = this.#parts;
    const flat = await redis.zrange(keys.keyUses, "0", "-1", "WITHSCORES");
    const uses = new Map<string, number>();
    for (let at = 0; at + 1 < flat.length; at += 2) {
      uses.set(flat[at] ?? "", Number(flat[at + 1]));
    }
    return (key) => uses.get(nameOf(key.digest));
  }
}

function nameOf(digest: string): string {
  return digest.slice(0, DIGITS);
}

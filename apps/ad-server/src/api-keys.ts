import { createHash, timingSafeEqual } from "node:crypto";

/** Letters of the digest that name a publisher in Redis: enough to tell keys apart. */
const PUBLISHER_CHARS = 32;

/** The keys that may call. Only digests are kept, and every comparison takes the same time. */
export class ApiKeys {
  readonly #digests: readonly Buffer[];

  constructor(keys: readonly string[]) {
    this.#digests = keys.map(digestOf);
  }

  /** The publisher that a key belongs to; undefined for none and for an unknown one. */
  publisherOf(key: string | undefined): string | undefined {
    const digest = digestOf(key ?? "");
    // No early end: the time must not tell which key matched.
    const matches = this.#digests.filter((known) => timingSafeEqual(known, digest));
    return matches[0]?.toString("hex").slice(0, PUBLISHER_CHARS);
  }
}

function digestOf(key: string): Buffer {
  return createHash("sha256").update(key, "utf8").digest();
}

import { createHash, timingSafeEqual } from "node:crypto";

/** Letters of the digest that name a publisher in Redis: enough to tell keys apart. */
const PUBLISHER_CHARS = 32;

/** What is known of a key. A revoked key was good once: its caller is told so, and gets nothing. */
export type KeyStanding =
  | { readonly kind: "good"; readonly publisher: string }
  | { readonly kind: "revoked" }
  | { readonly kind: "unknown" };

/** The keys that may call. Only digests are kept, and every comparison takes the same time. */
export class ApiKeys {
  readonly #digests: readonly Buffer[];
  readonly #revoked: readonly Buffer[];

  /** A key that stands in both lists is revoked. */
  constructor(keys: readonly string[], revokedKeys: readonly string[] = []) {
    this.#digests = keys.map(digestOf);
    this.#revoked = revokedKeys.map(digestOf);
  }

  standingOf(key: string | undefined): KeyStanding {
    const digest = digestOf(key ?? "");
    // No early end: the time must not tell which key matched.
    const matches = this.#digests.filter((known) => timingSafeEqual(known, digest));
    const revoked = this.#revoked.filter((known) => timingSafeEqual(known, digest));
    if (revoked.length > 0) {
      return { kind: "revoked" };
    }
    const [match] = matches;
    return match === undefined
      ? { kind: "unknown" }
      : { kind: "good", publisher: match.toString("hex").slice(0, PUBLISHER_CHARS) };
  }

  /** The publisher that a key belongs to; undefined for none, an unknown one and a revoked one. */
  publisherOf(key: string | undefined): string | undefined {
    const standing = this.standingOf(key);
    return standing.kind === "good" ? standing.publisher : undefined;
  }
}

function digestOf(key: string): Buffer {
  return createHash("sha256").update(key, "utf8").digest();
}

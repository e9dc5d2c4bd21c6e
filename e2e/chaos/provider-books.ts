/** The provider's own books: what it sold, what it was sent, and what it took. */
import { createHash, randomUUID } from "node:crypto";
import type { Account } from "./fault.ts";
import type { HonestAnswer } from "./provider-faults.ts";

/** One POST of an acknowledgment, as it came and as it was answered. */
export interface AckPost {
  readonly atMs: number;
  readonly account: Account | "unknown";
  readonly idempotencyKey: string;
  readonly bodyHash: string;
  /** What it was worth: an answer that a fault kept back counts just the same. */
  readonly verdict: AckVerdict;
  /** Undefined if its answer went out whole and at once. */
  readonly fault: string | undefined;
}
export type AckVerdict = "taken" | "repeat" | "refused" | "rejected" | "not_looked_at";

/** An ad that was sold: its id went out with a 200, or would have. */
export interface SoldAd {
  readonly account: Account;
  readonly atMs: number;
}

/** What it thinks of each ad response, by the first byte of the id: 4 % refused, 4 % rejected. */
type Opinion =
  | { readonly kind: "takes"; readonly status: "ok" | "no_ad_used" }
  | { readonly kind: "refuses" }
  | { readonly kind: "rejects"; readonly status: 400 | 404 | 413 | 422 };

const REJECTIONS = [400, 404, 413, 422] as const;

export function opinionOf(adResponseId: string): Opinion {
  const byte = Number.parseInt(adResponseId.slice(0, 2), 16);
  if (byte < 10) {
    return { kind: "refuses" };
  }
  if (byte < 20) {
    return { kind: "rejects", status: REJECTIONS[byte % 4] ?? 422 };
  }
  return { kind: "takes", status: byte < 40 ? "no_ad_used" : "ok" };
}

export function hashOf(body: string | Buffer): string {
  return createHash("sha256").update(body).digest("base64url").slice(0, 22);
}

export class ProviderBooks {
  readonly sold = new Map<string, SoldAd>();
  readonly acknowledgments = new Map<string, AckPost[]>();
  readonly #taken = new Set<string>();

  /** Looks at an acknowledgment, and takes it if it is to be taken. */
  judge(id: string): { readonly verdict: AckVerdict; readonly answer: HonestAnswer } {
    const opinion = opinionOf(id);
    switch (opinion.kind) {
      case "refuses":
        return { verdict: "refused", answer: { status: 406, body: { code: "not_acknowledgeable" } } };
      case "rejects":
        return { verdict: "rejected", answer: { status: opinion.status, body: { code: "rejected" } } };
      case "takes": {
        if (this.#taken.has(id)) {
          return { verdict: "repeat", answer: { status: 409, body: { code: "already_acknowledged" } } };
        }
        this.#taken.add(id);
        const body = { ad_ack_id: randomUUID(), status: opinion.status, success: true };
        return { verdict: "taken", answer: { status: 200, body } };
      }
      default:
        return opinion satisfies never;
    }
  }

  record(id: string, post: AckPost): void {
    const posts = this.acknowledgments.get(id) ?? [];
    posts.push(post);
    this.acknowledgments.set(id, posts);
  }
}

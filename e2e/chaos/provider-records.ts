/** The provider's own records: which ads it sold, which acknowledgments were posted to it, and which it counted. */
import { createHash, randomUUID } from "node:crypto";
import type { Account } from "./fault.ts";
import type { NormalAnswer } from "./provider-faults.ts";

/** One POST of an acknowledgment: what arrived, and what the provider decided. */
export interface AckPost {
  readonly atMs: number;
  readonly account: Account | "unknown";
  readonly idempotencyKey: string;
  readonly bodyHash: string;
  /** The provider decides the same whether or not a fault keeps its answer back. */
  readonly decision: AckDecision;
  /** Undefined if the whole answer was sent without delay. */
  readonly fault: string | undefined;
}
/** `counted`: the first one for its id. `not_read`: a fault came before the provider read it. */
export type AckDecision = "counted" | "repeat" | "refused" | "rejected" | "not_read";

/** An ad that was sold: the provider answered with 200, or would have without a fault. */
export interface SoldAd {
  readonly account: Account;
  readonly atMs: number;
}

/** What the provider does with the first acknowledgment of an ad response. */
type Rule =
  | { readonly kind: "count"; readonly status: "ok" | "no_ad_used" }
  | { readonly kind: "refuse" }
  | { readonly kind: "reject"; readonly status: 400 | 404 | 413 | 422 };

const REJECTIONS = [400, 404, 413, 422] as const;

/** The first byte of the id decides: 4 % are refused, 4 % rejected. */
export function ruleFor(adResponseId: string): Rule {
  const byte = Number.parseInt(adResponseId.slice(0, 2), 16);
  if (byte < 10) {
    return { kind: "refuse" };
  }
  if (byte < 20) {
    return { kind: "reject", status: REJECTIONS[byte % 4] ?? 422 };
  }
  return { kind: "count", status: byte < 40 ? "no_ad_used" : "ok" };
}

export function hashOf(body: string | Buffer): string {
  return createHash("sha256").update(body).digest("base64url").slice(0, 22);
}

export class ProviderRecords {
  readonly sold = new Map<string, SoldAd>();
  readonly acknowledgments = new Map<string, AckPost[]>();
  readonly #counted = new Set<string>();

  /** Decides on an acknowledgment, and counts it if it is acceptable and the first one for its id. */
  decide(id: string): { readonly decision: AckDecision; readonly answer: NormalAnswer } {
    const rule = ruleFor(id);
    switch (rule.kind) {
      case "refuse":
        return { decision: "refused", answer: { status: 406, body: { code: "not_acknowledgeable" } } };
      case "reject":
        return { decision: "rejected", answer: { status: rule.status, body: { code: "rejected" } } };
      case "count": {
        if (this.#counted.has(id)) {
          return { decision: "repeat", answer: { status: 409, body: { code: "already_acknowledged" } } };
        }
        this.#counted.add(id);
        const body = { ad_ack_id: randomUUID(), status: rule.status, success: true };
        return { decision: "counted", answer: { status: 200, body } };
      }
      default:
        return rule satisfies never;
    }
  }

  record(id: string, post: AckPost): void {
    const posts = this.acknowledgments.get(id) ?? [];
    posts.push(post);
    this.acknowledgments.set(id, posts);
  }
}

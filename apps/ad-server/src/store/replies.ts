import {
  type AdAckId,
  adAckIdSchema,
  INJECTION_OUTCOMES,
  type Verdict,
  verdictSchema,
} from "@adrelay/contract";
import { z } from "zod";

/** The first acknowledgment of a response, which is the only one that counts. */
export interface Acknowledgment {
  readonly adAckId: AdAckId;
  readonly verdict: Verdict;
}

/** What became of one acknowledgment. */
export type AcknowledgeOutcome =
  | { readonly kind: "recorded"; readonly acknowledgment: Acknowledgment }
  | { readonly kind: "unknown_ad_response" }
  | { readonly kind: "other_publisher" }
  | { readonly kind: "not_acknowledgeable" }
  | { readonly kind: "already_acknowledged"; readonly acknowledgment: Acknowledgment };

const acknowledgmentReply = z
  .tuple([z.int(), adAckIdSchema, verdictSchema])
  .transform(([, adAckId, verdict]): Acknowledgment => ({ adAckId, verdict }));

/** Reads the reply of acknowledge.lua. It throws on one that the script can't give: that is a bug. */
export function parseAcknowledgeReply(reply: unknown): AcknowledgeOutcome {
  const [code] = z.tuple([z.int()], z.unknown()).parse(reply);
  switch (code) {
    case 0:
      return { kind: "recorded", acknowledgment: acknowledgmentReply.parse(reply) };
    case 1:
      return { kind: "unknown_ad_response" };
    case 2:
      return { kind: "other_publisher" };
    case 3:
      return { kind: "not_acknowledgeable" };
    case 4:
      return { kind: "already_acknowledged", acknowledgment: acknowledgmentReply.parse(reply) };
    default:
      throw new RangeError(`acknowledge.lua has no code ${code}`);
  }
}

/** A response as Redis holds it. */
export interface ServedResponse {
  readonly publisher: string;
  /** Acknowledgments that reached the books for it, refused ones included. */
  readonly posts: number;
  readonly acknowledgment: Acknowledgment | undefined;
  /** Whether the ad was marked as one; undefined for one that was not used, or judged before this was. */
  readonly disclosed: boolean | undefined;
}

const servedSchema = z
  .object({
    outcome: z.enum(Object.values(INJECTION_OUTCOMES)),
    publisher: z.string(),
    posts: z.coerce.number().int(),
    ack_id: adAckIdSchema.optional(),
    verdict: verdictSchema.optional(),
    disclosed: z.enum(["0", "1"]).optional(),
  })
  .transform(
    ({ publisher, posts, ack_id, verdict, disclosed }): ServedResponse => ({
      publisher,
      posts,
      acknowledgment:
        ack_id === undefined || verdict === undefined ? undefined : { adAckId: ack_id, verdict },
      disclosed: disclosed === undefined ? undefined : disclosed === "1",
    }),
  );

/** Reads the hash of a response; undefined if there is none. */
export function parseServedResponse(fields: Record<string, string>): ServedResponse | undefined {
  return Object.keys(fields).length === 0 ? undefined : servedSchema.parse(fields);
}

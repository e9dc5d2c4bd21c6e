import {
  type AdAckId,
  type AdResponseId,
  adAckIdSchema,
  INJECTION_OUTCOMES,
  type Verdict,
  verdictSchema,
} from "@adrelay/contract";
import { Periodic } from "@adrelay/service-kit";
import { AD_LINKS, type AdLink, type AdvertisedProduct, type Judgment } from "@adrelay/verdict";
import type { Logger } from "pino";
import { z } from "zod";
import type { OfferTerms } from "../money/auction.ts";
import { COUNTS_KEY, MONEY_KEYS, responseKey, shownKey } from "./keys.ts";
import type { RedisStore, Stored } from "./redis-store.ts";

interface InjectionRecord {
  readonly id: AdResponseId;
  readonly publisher: string;
  /** The hash from sessionHashOf. */
  readonly session: string;
  readonly decision: "auction" | "rejected" | "no_fill";
  /** Best first; empty unless the decision is an auction. */
  readonly offers: readonly OfferTerms[];
}

interface NewAcknowledgment {
  readonly id: AdResponseId;
  readonly publisher: string;
  readonly adAckId: AdAckId;
  readonly judgment: Judgment;
  /** The ad's current budget; 0 for an ad that the catalogue no longer has. */
  readonly budgetMicros: number;
}

/** The ad that a response showed. It never changes. */
interface ShownAd {
  readonly ad: string;
  /** The product as it was when the ad was served: an answer is judged by what the model was given. */
  readonly product: AdvertisedProduct;
}

/** The first acknowledgment of a response. Only the first one counts. */
interface Acknowledgment {
  readonly adAckId: AdAckId;
  readonly verdict: Verdict;
}

/** What one acknowledgment led to. */
export type AcknowledgeOutcome =
  | { readonly kind: "recorded"; readonly acknowledgment: Acknowledgment }
  | { readonly kind: "unknown_ad_response" }
  | { readonly kind: "other_publisher" }
  | { readonly kind: "not_acknowledgeable" }
  | { readonly kind: "already_acknowledged"; readonly acknowledgment: Acknowledgment };

/** A response as Redis holds it. */
interface ServedResponse {
  readonly publisher: string;
  /** Acknowledgments of this response that reached Redis, refused ones included. */
  readonly posts: number;
  readonly acknowledgment: Acknowledgment | undefined;
  /** Whether the answer marks the ad as one; undefined if the ad was not used or not acknowledged yet. */
  readonly disclosed: boolean | undefined;
  /** Where a used ad links to; undefined as above, and for answers that were judged before links were. */
  readonly link: AdLink | undefined;
}

/** A response can be acknowledged and looked up for 30 days. After that its id is unknown. */
export const RESPONSE_LIFETIME_MS = 30 * 86_400_000;
/** Reports are kept for 400 days: a year, and time to write the yearly report. */
const REPORT_LIFETIME_MS = 400 * 86_400_000;
/** Bounds how long one batch of the sweep holds Redis: about a millisecond. */
const SWEEP_BATCH_MAX = 100;
const SWEEP_INTERVAL_MS = 1000;

/**
 * Injections, their acknowledgments, and the money that the two move. Of two concurrent acknowledgments exactly one is
 * recorded. Of any number of concurrent injections only as many are sold as the budget can pay.
 */
export class ResponseStore {
  readonly #store: RedisStore;
  readonly #ackWindowMs: number;

  constructor(store: RedisStore, ackWindowMs: number) {
    this.#store = store;
    this.#ackWindowMs = ackWindowMs;
  }

  /** Books an injection before its answer goes out. Returns the index of the offer that was sold, if one was. */
  async recordInjection(record: InjectionRecord): Promise<Stored<number | undefined>> {
    const { id, publisher, session, decision, offers } = record;
    const stored = await this.#store.run(
      "record-injection",
      [...MONEY_KEYS, responseKey(id), shownKey(session)],
      [
        ...[id, publisher, session, decision, JSON.stringify(offers)],
        ...[RESPONSE_LIFETIME_MS, this.#ackWindowMs, REPORT_LIFETIME_MS],
      ],
    );
    return mapped(stored, (reply) => {
      const place = countReply.parse(reply);
      return place === 0 ? undefined : place - 1;
    });
  }

  /** The ad that a response showed; undefined if the response is unknown or showed none. */
  async loadShownAd(id: AdResponseId): Promise<Stored<ShownAd | undefined>> {
    const stored = await this.#store.query((redis) =>
      redis.hmget(responseKey(id), "ad", "product", "maker", "landing_url"),
    );
    return mapped(stored, ([ad, productName, advertiser, landingUrl]) =>
      // All four are written in one step.
      ad && productName && advertiser && landingUrl
        ? { ad, product: { productName, advertiser, landingUrl } }
        : undefined,
    );
  }

  /** Records an acknowledgment and settles its money, or returns why it is refused. */
  async acknowledge(acknowledgment: NewAcknowledgment): Promise<Stored<AcknowledgeOutcome>> {
    const { id, publisher, adAckId, judgment, budgetMicros } = acknowledgment;
    const [disclosed, link] =
      judgment.verdict === "ok" ? [Number(judgment.disclosed), judgment.link] : ["", ""];
    const stored = await this.#store.run(
      "acknowledge",
      [...MONEY_KEYS, responseKey(id)],
      [publisher, adAckId, judgment.verdict, budgetMicros, disclosed, link],
    );
    return mapped(stored, parseAcknowledgeReply);
  }

  /** Ends a batch of the reservations whose acknowledgment window has passed. Returns how many ended. */
  async expireReservations(batchMax = SWEEP_BATCH_MAX): Promise<Stored<number>> {
    const stored = await this.#store.run("expire-reservations", MONEY_KEYS, [batchMax]);
    return mapped(stored, (reply) => countReply.parse(reply));
  }

  /** Whether Redis takes writes: a replica doesn't, nor does a Redis that can't write its files. */
  async takesWrites(): Promise<boolean> {
    const { kind } = await this.expireReservations(0);
    return kind === "ok";
  }

  /** One response; undefined if its id is unknown. */
  async load(id: AdResponseId): Promise<Stored<ServedResponse | undefined>> {
    const stored = await this.#store.query((redis) => redis.hgetall(responseKey(id)));
    return mapped(stored, (fields) =>
      Object.keys(fields).length === 0 ? undefined : servedSchema.parse(fields),
    );
  }

  /** Counts since the first start, by name (see COUNTS_KEY). A count that is still 0 may be absent. */
  async loadCounts(): Promise<Stored<ReadonlyMap<string, number>>> {
    const stored = await this.#store.query((redis) => redis.hgetall(COUNTS_KEY));
    return mapped(
      stored,
      (counts) => new Map(Object.entries(counts).map(([name, count]) => [name, Number(count)])),
    );
  }
}

/**
 * Releases every second the reservations that were never acknowledged. Every process sweeps; each reservation ends
 * once.
 */
export function sweepReservations(store: ResponseStore, log: Logger): Periodic {
  return new Periodic(
    async () => {
      const expired = await store.expireReservations();
      if (expired.kind === "unavailable" || expired.value === 0) {
        // No log line while Redis is away: the readiness check reports that already.
        return SWEEP_INTERVAL_MS;
      }
      log.info({ event: "reservations_expired", count: expired.value });
      return expired.value < SWEEP_BATCH_MAX ? SWEEP_INTERVAL_MS : 0;
    },
    SWEEP_INTERVAL_MS,
    (error) => log.error({ event: "reservation_sweep_failed", err: error }),
  );
}

function mapped<T, U>(stored: Stored<T>, parse: (value: T) => U): Stored<U> {
  return stored.kind === "ok" ? { kind: "ok", value: parse(stored.value) } : stored;
}

const countReply = z.int().min(0);

const acknowledgmentReply = z
  .tuple([z.int(), adAckIdSchema, verdictSchema])
  .transform(([, adAckId, verdict]): Acknowledgment => ({ adAckId, verdict }));

/** Parses the reply of acknowledge.lua. A reply that the script can't give is a bug: it throws. */
function parseAcknowledgeReply(reply: unknown): AcknowledgeOutcome {
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
      throw new RangeError(`acknowledge.lua returned the unknown code ${code}`);
  }
}

const servedSchema = z
  .object({
    outcome: z.enum(Object.values(INJECTION_OUTCOMES)),
    publisher: z.string(),
    posts: z.coerce.number().int(),
    ack_id: adAckIdSchema.optional(),
    verdict: verdictSchema.optional(),
    disclosed: z.enum(["0", "1"]).optional(),
    link: z.enum(AD_LINKS).optional(),
  })
  .transform(
    ({ publisher, posts, ack_id, verdict, disclosed, link }): ServedResponse => ({
      publisher,
      posts,
      acknowledgment:
        ack_id === undefined || verdict === undefined ? undefined : { adAckId: ack_id, verdict },
      disclosed: disclosed === undefined ? undefined : disclosed === "1",
      link,
    }),
  );

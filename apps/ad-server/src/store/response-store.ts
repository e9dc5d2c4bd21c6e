import type { AdAckId, AdResponseId } from "@adrelay/contract";
import { z } from "zod";
import type { OfferTerms } from "../money/offer-terms.ts";
import type { AdvertisedProduct, Judgment } from "../verdict/judge-answer.ts";
import type { Books, Stored } from "./books.ts";
import { BOOK_KEYS, COUNTS_KEY, responseKey } from "./keys.ts";
import {
  type AcknowledgeOutcome,
  parseAcknowledgeReply,
  parseServedResponse,
  type ServedResponse,
} from "./replies.ts";

export interface InjectionRecord {
  readonly id: AdResponseId;
  readonly publisher: string;
  /** See sessionMarkOf. */
  readonly session: string;
  readonly decision: "auction" | "rejected" | "no_fill";
  /** Best first; none unless there is an auction. */
  readonly offers: readonly OfferTerms[];
}

export interface NewAcknowledgment {
  readonly id: AdResponseId;
  readonly publisher: string;
  readonly adAckId: AdAckId;
  readonly judgment: Judgment;
  /** The ad's budget as of now; 0 for an ad that isn't sold any more. */
  readonly budgetMicros: number;
}

/** What a response showed. It never changes. */
export interface ShownAd {
  readonly ad: string;
  /** As it was then: an answer is judged by what was served. */
  readonly product: AdvertisedProduct;
}

/** Responses can be acknowledged and looked up for 30 days; then their ids are unknown. */
export const RESPONSE_LIFETIME_MS = 30 * 86_400_000;
/** Reports are kept for 400 days: a year, and time to write it up. */
const REPORT_LIFETIME_MS = 400 * 86_400_000;

const placeReply = z.int().min(0);

/**
 * What was answered, what was acknowledged, and the money in between. Of two concurrent acknowledgments exactly
 * one is recorded, and of any number of concurrent injections only as many are sold as the budget pays.
 */
export class ResponseStore {
  readonly #books: Books;
  readonly #ackWindowMs: number;

  constructor(books: Books, ackWindowMs: number) {
    this.#books = books;
    this.#ackWindowMs = ackWindowMs;
  }

  /** Books an injection before its answer goes out; answers with the index of the offer that was taken. */
  async recordInjection(record: InjectionRecord): Promise<Stored<number | undefined>> {
    const { id, publisher, session, decision, offers } = record;
    const stored = await this.#books.run(
      "record-injection",
      [...BOOK_KEYS, responseKey(id)],
      [
        ...[id, publisher, session, decision, JSON.stringify(offers)],
        ...[RESPONSE_LIFETIME_MS, this.#ackWindowMs, REPORT_LIFETIME_MS],
      ],
    );
    if (stored.kind === "unavailable") {
      return stored;
    }
    const place = placeReply.parse(stored.value);
    return { kind: "ok", value: place === 0 ? undefined : place - 1 };
  }

  /** What a response advertised; undefined if it is unknown or advertised nothing. */
  async loadShownAd(id: AdResponseId): Promise<Stored<ShownAd | undefined>> {
    const stored = await this.#books.ask((redis) =>
      redis.hmget(responseKey(id), "ad", "product", "maker", "landing_url"),
    );
    if (stored.kind === "unavailable") {
      return stored;
    }
    // Responses that an older version served have the name alone.
    const [ad, productName, advertiser, landingUrl] = stored.value;
    const product = {
      productName: productName ?? "",
      advertiser: advertiser ?? "",
      landingUrl: landingUrl ?? "",
    };
    return { kind: "ok", value: ad && productName ? { ad, product } : undefined };
  }

  /** Records an acknowledgment and settles its money, or says why it can't be. */
  async acknowledge(acknowledgment: NewAcknowledgment): Promise<Stored<AcknowledgeOutcome>> {
    const { id, publisher, adAckId, judgment, budgetMicros } = acknowledgment;
    const disclosed = judgment.verdict === "ok" ? Number(judgment.disclosed) : "";
    const stored = await this.#books.run(
      "acknowledge",
      [...BOOK_KEYS, responseKey(id)],
      [publisher, adAckId, judgment.verdict, budgetMicros, disclosed],
    );
    return stored.kind === "ok" ? { kind: "ok", value: parseAcknowledgeReply(stored.value) } : stored;
  }

  /** One response; undefined if it is unknown. */
  async load(id: AdResponseId): Promise<Stored<ServedResponse | undefined>> {
    const stored = await this.#books.ask((redis) => redis.hgetall(responseKey(id)));
    return stored.kind === "ok" ? { kind: "ok", value: parseServedResponse(stored.value) } : stored;
  }

  /** Counts since the first start, by name (see COUNTS_KEY); one that is still 0 may be absent. */
  async loadCounts(): Promise<Stored<ReadonlyMap<string, number>>> {
    const stored = await this.#books.ask((redis) => redis.hgetall(COUNTS_KEY));
    return stored.kind === "ok"
      ? {
          kind: "ok",
          value: new Map(Object.entries(stored.value).map(([name, count]) => [name, Number(count)])),
        }
      : stored;
  }
}

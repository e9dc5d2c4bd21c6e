import { readFileSync } from "node:fs";
import type { AdAckId, AdResponseId, InjectionOutcome } from "@adrelay/contract";
import { OVERDUE, withDeadline } from "@adrelay/service-kit";
import type { Redis } from "ioredis";
import type { AdvertisedProduct, Judgment } from "../verdict/judge-answer.ts";
import { COUNTS_KEY, responseKey } from "./keys.ts";
import {
  type AcknowledgeOutcome,
  parseAcknowledgeReply,
  parseServedResponse,
  type ServedResponse,
} from "./replies.ts";

/** A result of the store. `unavailable` leaves open whether a write took effect; `reason` is for the log. */
export type Stored<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "unavailable"; readonly reason: string };

export interface InjectionRecord {
  readonly id: AdResponseId;
  readonly outcome: InjectionOutcome;
  readonly publisher: string;
  /** Empty texts unless an ad was served. */
  readonly product: AdvertisedProduct;
  readonly adId: string;
}

export interface NewAcknowledgment {
  readonly id: AdResponseId;
  readonly publisher: string;
  readonly adAckId: AdAckId;
  readonly judgment: Judgment;
}

/** Responses can be acknowledged and looked up for 30 days; then their ids are unknown. */
const RESPONSE_LIFETIME_MS = 30 * 24 * 3_600_000;
/** Bound of one call of the store, so that a caller has its answer within a second. */
const STORE_TIMEOUT_MS = 900;

/**
 * The ad server's books in Redis. Each change is one script, so that a crash leaves no half of it and of
 * two concurrent acknowledgments exactly one is recorded. While Redis is away or isn't durable nothing is
 * taken.
 */
export class ResponseStore {
  readonly #redis: Redis;
  readonly #durability: { readonly isDurable: boolean };
  readonly #recordInjection = readScript("record-injection.lua");
  readonly #acknowledge = readScript("acknowledge.lua");

  constructor(redis: Redis, durability: { readonly isDurable: boolean }) {
    this.#redis = redis;
    this.#durability = durability;
  }

  /** Books an injection before its answer goes out. */
  async recordInjection(record: InjectionRecord): Promise<Stored<void>> {
    const { id, outcome, publisher, product, adId } = record;
    const stored = await this.#ask((redis) =>
      redis.eval(
        this.#recordInjection,
        2,
        responseKey(id),
        COUNTS_KEY,
        outcome,
        publisher,
        product.productName,
        adId,
        RESPONSE_LIFETIME_MS,
        product.advertiser,
        product.landingUrl,
      ),
    );
    return stored.kind === "ok" ? { kind: "ok", value: undefined } : stored;
  }

  /** The product that a response advertised; undefined if it is unknown or had none. It never changes. */
  async loadProduct(id: AdResponseId): Promise<Stored<AdvertisedProduct | undefined>> {
    const stored = await this.#ask((redis) =>
      redis.hmget(responseKey(id), "product", "advertiser", "landing_url"),
    );
    if (stored.kind !== "ok") {
      return stored;
    }
    // Responses that an older version served have the name alone.
    const [productName, advertiser, landingUrl] = stored.value.map((text) => text ?? "");
    return {
      kind: "ok",
      value: productName
        ? { productName, advertiser: advertiser ?? "", landingUrl: landingUrl ?? "" }
        : undefined,
    };
  }

  /** Records an acknowledgment, or says why it can't be. */
  async acknowledge(acknowledgment: NewAcknowledgment): Promise<Stored<AcknowledgeOutcome>> {
    const { id, publisher, adAckId, judgment } = acknowledgment;
    const disclosed = judgment.verdict === "ok" ? Number(judgment.disclosed) : "";
    const stored = await this.#ask<unknown>((redis) =>
      redis.eval(
        this.#acknowledge,
        2,
        responseKey(id),
        COUNTS_KEY,
        publisher,
        adAckId,
        judgment.verdict,
        disclosed,
      ),
    );
    return stored.kind === "ok" ? { kind: "ok", value: parseAcknowledgeReply(stored.value) } : stored;
  }

  /** One response; undefined if it is unknown. */
  async load(id: AdResponseId): Promise<Stored<ServedResponse | undefined>> {
    const stored = await this.#ask((redis) => redis.hgetall(responseKey(id)));
    return stored.kind === "ok" ? { kind: "ok", value: parseServedResponse(stored.value) } : stored;
  }

  /** Counts since the first start, by name (see COUNTS_KEY); one that is still 0 may be absent. */
  async loadCounts(): Promise<Stored<ReadonlyMap<string, number>>> {
    const stored = await this.#ask((redis) => redis.hgetall(COUNTS_KEY));
    return stored.kind === "ok"
      ? {
          kind: "ok",
          value: new Map(Object.entries(stored.value).map(([name, count]) => [name, Number(count)])),
        }
      : stored;
  }

  async #ask<T>(command: (redis: Redis) => Promise<T>): Promise<Stored<T>> {
    if (!this.#durability.isDurable) {
      return { kind: "unavailable", reason: "Redis is away or not durable" };
    }
    try {
      const value = await withDeadline(command(this.#redis), STORE_TIMEOUT_MS);
      return value === OVERDUE ? { kind: "unavailable", reason: "Redis is slow" } : { kind: "ok", value };
    } catch (error) {
      return { kind: "unavailable", reason: error instanceof Error ? error.message : "unknown" };
    }
  }
}

function readScript(name: string): string {
  return readFileSync(new URL(`./scripts/${name}`, import.meta.url), "utf8");
}

import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, type Verdict } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/dev-servers";
import { Redis } from "ioredis";
import type { OfferTerms } from "../src/money/auction.ts";
import { makeSpendReport, type ReportEntry } from "../src/money/spend-report.ts";
import { ADS_KEY, adKey } from "../src/store/keys.ts";
import { RedisStore, type Stored } from "../src/store/redis-store.ts";
import { ReportStore } from "../src/store/report-store.ts";
import { ResponseStore } from "../src/store/response-store.ts";

export const PUBLISHER = "a".repeat(32);
export const OTHER_PUBLISHER = "b".repeat(32);
/** Longer than any test, so that reservations don't end. */
const LONG_WINDOW_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** An offer at 100 micros with a budget for ten impressions, without cap and pacing. */
export function offerOf(more: Partial<OfferTerms> = {}): OfferTerms {
  return {
    ad: "drift",
    advertiser: "velmora",
    price: 100,
    budget: 1000,
    remembered: { product: "P" },
    ...more,
  };
}

export interface Serving {
  readonly offers?: readonly OfferTerms[];
  readonly session?: string;
  readonly publisher?: string;
  readonly decision?: "auction" | "rejected" | "no_fill";
}

/** The ad server's stores on their own Redis. */
export async function openTestStore() {
  const server = await startTestRedis();
  const redis = new Redis(server.url);
  const redisStore = new RedisStore(redis, { isDurable: true });
  const reports = new ReportStore(redisStore);

  const storeOf = (ackWindowMs: number) => new ResponseStore(redisStore, ackWindowMs);
  const serve = async (serving: Serving = {}, store = storeOf(LONG_WINDOW_MS)) => {
    const { offers = [offerOf()], session = "s", publisher = PUBLISHER, decision = "auction" } = serving;
    const id = adResponseIdSchema.parse(randomUUID());
    const record = { id, publisher, session, decision, offers: decision === "auction" ? offers : [] };
    const index = expectStored(await store.recordInjection(record));
    return { id, publisher, ad: index === undefined ? undefined : offers[index]?.ad };
  };
  const acknowledge = async (
    { id, publisher }: { id: string; publisher: string },
    verdict: Verdict,
    budgetMicros = 1000,
  ) => {
    const adAckId = adAckIdSchema.parse(randomUUID());
    const judgment = verdict === "ok" ? ({ verdict, disclosed: true, link: "none" } as const) : { verdict };
    const acknowledgment = { id: adResponseIdSchema.parse(id), publisher, adAckId, judgment, budgetMicros };
    return expectStored(await storeOf(LONG_WINDOW_MS).acknowledge(acknowledgment)).kind;
  };
  const entries = async (publisher?: string): Promise<readonly ReportEntry[]> => {
    const today = Math.floor(Date.now() / DAY_MS);
    // With a day before and after: one of the two clocks may be past midnight when the other isn't.
    return expectStored(await reports.loadEntries({ firstDay: today - 1, lastDay: today + 1 }, publisher));
  };
  return {
    redis,
    storeOf,
    serve,
    acknowledge,
    entries,
    totals: async (publisher?: string) => makeSpendReport(await entries(publisher), "ad").totals,
    fundsOf: async (ad = "drift") => {
      const [spent, reserved] = await redis.hmget(adKey(ad), "spent", "reserved");
      return { spent: Number(spent), reserved: Number(reserved) };
    },
    allAds: () => redis.smembers(ADS_KEY),
    expire: async (batchMax?: number) =>
      expectStored(await storeOf(LONG_WINDOW_MS).expireReservations(batchMax)),
    clear: () => redis.flushall(),
    dispose: async () => {
      redis.disconnect();
      await server.dispose();
    },
  };
}

function expectStored<T>(stored: Stored<T>): T {
  if (stored.kind === "unavailable") {
    throw new TypeError(`the store is unavailable: ${stored.reason}`);
  }
  return stored.value;
}

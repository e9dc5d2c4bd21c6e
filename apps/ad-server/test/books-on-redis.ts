import { randomUUID } from "node:crypto";
import { adAckIdSchema, adResponseIdSchema, type Verdict } from "@adrelay/contract";
import { startTestRedis } from "@adrelay/testkit";
import { Redis } from "ioredis";
import type { OfferTerms } from "../src/money/offer-terms.ts";
import { type BookEntry, makeSpendReport } from "../src/money/spend-report.ts";
import { Books, type Stored } from "../src/store/books.ts";
import { ADS_KEY, adKey } from "../src/store/keys.ts";
import { ReportStore } from "../src/store/report-store.ts";
import { expireReservations } from "../src/store/reservation-sweep.ts";
import { ResponseStore } from "../src/store/response-store.ts";

export const PUBLISHER = "a".repeat(32);
export const OTHER_PUBLISHER = "b".repeat(32);
/** Room for a test that must not see its reservations end. */
const LONG_WINDOW_MS = 3_600_000;
const DAY_MS = 86_400_000;

/** An offer at 100 micros with a budget for ten of it, without cap and pacing. */
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

/** The ad server's stores on a Redis of their own. */
export async function openBooks() {
  const server = await startTestRedis();
  const redis = new Redis(server.url);
  const books = new Books(redis, { isDurable: true });
  const reports = new ReportStore(books);

  const storeOf = (ackWindowMs: number) => new ResponseStore(books, ackWindowMs);
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
    const judgment = verdict === "ok" ? ({ verdict, disclosed: true } as const) : { verdict };
    const acknowledgment = { id: adResponseIdSchema.parse(id), publisher, adAckId, judgment, budgetMicros };
    return expectStored(await storeOf(LONG_WINDOW_MS).acknowledge(acknowledgment)).kind;
  };
  const entries = async (publisher?: string): Promise<readonly BookEntry[]> => {
    const today = Math.floor(Date.now() / DAY_MS);
    // A day either side: the test's clock may be past midnight when Redis' isn't.
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
    expire: async (batchMax?: number) => expectStored(await expireReservations(books, batchMax)),
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

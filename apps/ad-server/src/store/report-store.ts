import type { Redis } from "ioredis";
import { z } from "zod";
import { COUNTERS, type ReportEntry } from "../money/spend-report.ts";
import { ADS_KEY, adKey, PUBLISHERS_KEY, reportKey } from "./keys.ts";
import type { RedisStore, Stored } from "./redis-store.ts";

/** Days in UTC, both ends included, as numbers since 1970. */
interface DayRange {
  readonly firstDay: number;
  readonly lastDay: number;
}

interface AdFunds {
  readonly ad: string;
  readonly advertiser: string;
  readonly spentMicros: number;
  readonly reservedMicros: number;
}

/** A report may take longer than an injection, but the wait is bounded. */
const REPORT_TIMEOUT_MS = 10_000;
/** Commands that are sent together: few, so that a long report doesn't keep injections waiting. */
const BATCH_MAX = 50;
const DAY_MS = 86_400_000;

const fieldSchema = z
  .string()
  .transform((field) => field.split("|"))
  .pipe(z.tuple([z.string(), z.enum(COUNTERS)]));
const countSchema = z.coerce.number().int();
const fundsSchema = z.object({
  advertiser: z.string().default(""),
  spent: countSchema.default(0),
  reserved: countSchema.default(0),
});

/** Reads what the scripts counted. One day of one publisher is read in one step, so its numbers fit together. */
export class ReportStore {
  readonly #store: RedisStore;

  constructor(store: RedisStore) {
    this.#store = store;
  }

  /** All numbers of these days: of one publisher, or of every publisher that ever asked for an ad. */
  loadEntries({ firstDay, lastDay }: DayRange, publisher?: string): Promise<Stored<readonly ReportEntry[]>> {
    const days = Array.from({ length: lastDay - firstDay + 1 }, (_, offset) => firstDay + offset);
    return this.#store.query(async (redis) => {
      const publishers = publisher === undefined ? await redis.smembers(PUBLISHERS_KEY) : [publisher];
      const pages = days.flatMap((day) => publishers.map((name) => ({ day, publisher: name })));
      const hashes = await loadHashes(
        redis,
        pages.map((page) => reportKey(page.day, page.publisher)),
      );
      return pages.flatMap((page, index) => entriesOf(page, hashes[index]));
    }, REPORT_TIMEOUT_MS);
  }

  /** Advertiser and money of ads since the first start. Default: all ads that ever had money reserved. */
  loadFunds(ads?: readonly string[]): Promise<Stored<readonly AdFunds[]>> {
    return this.#store.query(async (redis) => {
      const wanted = ads ?? (await redis.smembers(ADS_KEY));
      const hashes = await loadHashes(redis, wanted.map(adKey));
      return wanted.map((ad, index) => fundsOf(ad, hashes[index]));
    }, REPORT_TIMEOUT_MS);
  }
}

async function loadHashes(redis: Redis, keys: readonly string[]): Promise<unknown[]> {
  const hashes: unknown[] = [];
  for (let from = 0; from < keys.length; from += BATCH_MAX) {
    const pipeline = redis.pipeline();
    for (const key of keys.slice(from, from + BATCH_MAX)) {
      pipeline.hgetall(key);
    }
    for (const [error, hash] of (await pipeline.exec()) ?? []) {
      if (error !== null) {
        throw error;
      }
      hashes.push(hash);
    }
  }
  return hashes;
}

function entriesOf({ day, publisher }: { day: number; publisher: string }, reply: unknown): ReportEntry[] {
  const fields = z.record(z.string(), countSchema).parse(reply);
  return Object.entries(fields).map(([field, value]) => {
    const [ad, counter] = fieldSchema.parse(field);
    return { day: isoDayOf(day), publisher, ad: ad === "" ? null : ad, counter, value };
  });
}

function fundsOf(ad: string, reply: unknown): AdFunds {
  const { advertiser, spent, reserved } = fundsSchema.parse(reply);
  return { ad, advertiser, spentMicros: spent, reservedMicros: reserved };
}

/** The number since 1970 of a day that is written as YYYY-MM-DD. */
export function dayNumberOf(isoDay: string): number {
  return Date.parse(`${isoDay}T00:00:00Z`) / DAY_MS;
}

function isoDayOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

import type { Redis } from "ioredis";
import { z } from "zod";
import { type BookEntry, COUNTERS } from "../money/spend-report.ts";
import type { Books, Stored } from "./books.ts";
import { ADS_KEY, adKey, PUBLISHERS_KEY, reportKey } from "./keys.ts";

/** Days of the books, both ends included; as numbers since 1970, UTC. */
export interface DayRange {
  readonly firstDay: number;
  readonly lastDay: number;
}

export interface AdFunds {
  readonly ad: string;
  readonly advertiser: string;
  readonly spentMicros: number;
  readonly reservedMicros: number;
}

/** A report may take longer than an injection, but no caller waits without end. */
const REPORT_TIMEOUT_MS = 10_000;
/** Commands sent at once, so that a long report doesn't keep injections waiting. */
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

/** Reads what the scripts counted. Each publisher's day is read in one step, so that its numbers fit together. */
export class ReportStore {
  readonly #books: Books;

  constructor(books: Books) {
    this.#books = books;
  }

  /** All numbers of the days: of one publisher, or of all that ever asked. */
  loadEntries({ firstDay, lastDay }: DayRange, publisher?: string): Promise<Stored<readonly BookEntry[]>> {
    const days = Array.from({ length: lastDay - firstDay + 1 }, (_, offset) => firstDay + offset);
    return this.#books.ask(async (redis) => {
      const publishers = publisher === undefined ? await redis.smembers(PUBLISHERS_KEY) : [publisher];
      const pages = days.flatMap((day) => publishers.map((of) => ({ day, publisher: of })));
      const hashes = await loadHashes(
        redis,
        pages.map((page) => reportKey(page.day, page.publisher)),
      );
      return pages.flatMap((page, index) => entriesOf(page, hashes[index]));
    }, REPORT_TIMEOUT_MS);
  }

  /** Advertiser and money of ads, since the first start; of all that ever had money reserved unless named. */
  loadFunds(ads?: readonly string[]): Promise<Stored<readonly AdFunds[]>> {
    return this.#books.ask(async (redis) => {
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

function entriesOf({ day, publisher }: { day: number; publisher: string }, reply: unknown): BookEntry[] {
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

/** The number of a day since 1970, from YYYY-MM-DD. */
export function dayNumberOf(isoDay: string): number {
  return Date.parse(`${isoDay}T00:00:00Z`) / DAY_MS;
}

function isoDayOf(day: number): string {
  return new Date(day * DAY_MS).toISOString().slice(0, 10);
}

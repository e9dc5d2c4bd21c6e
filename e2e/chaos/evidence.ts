/** What publishers, provider, ledger and look-ups know of each ad response in the end. */

import { adResponseIdSchema } from "@adrelay/contract";
import { type LedgerEntry, openStore } from "@adrelay/store";
import { eventually, relayCaller, type Samples } from "@adrelay/testkit";
import type { Account, AppId, Erasure } from "./fault.ts";
import type { AckPost, SoldAd } from "./provider-records.ts";
import type { AdRecord, PublisherRecords } from "./publisher-records.ts";
import type { Scraper } from "./scraper.ts";
import type { ChaosStack } from "./stack.ts";

export interface AdEvidence {
  readonly id: string;
  readonly account: Account;
  /** What its publisher knows. Undefined if the answer to its injection got lost. */
  readonly publisherRecord: AdRecord | undefined;
  /** What the provider knows. */
  readonly sold: SoldAd | undefined;
  readonly posts: readonly AckPost[];
  readonly isCounted: boolean;
  /** What the ledger and the public look-up know. Undefined if they know nothing. */
  readonly entry: LedgerEntry | undefined;
  readonly view: View | undefined;
  /** Undefined if no operator has erased it. */
  readonly erasure: Erasure | undefined;
}

/** What a look-up answered. */
interface View {
  readonly state: unknown;
  readonly ackId: unknown;
  readonly attempts: unknown;
}

export interface Evidence {
  readonly ads: readonly AdEvidence[];
  readonly metrics: ReadonlyMap<AppId, Samples>;
}

const CONCURRENT_LOOK_UPS = 16;

export async function gatherEvidence(
  stack: ChaosStack,
  records: PublisherRecords,
  scraper: Scraper,
): Promise<Evidence> {
  const store = openStore({ redis: stack.admin, recordRetentionMs: 1 });
  const { sold, acknowledgments } = stack.provider;
  const ids = [...new Set([...records.ads.keys(), ...sold.keys(), ...acknowledgments.keys()])];
  const ads = await mapConcurrently(ids, async (id): Promise<AdEvidence> => {
    const publisherRecord = records.ads.get(id);
    const posts = acknowledgments.get(id) ?? [];
    const account = publisherRecord?.account ?? sold.get(id)?.account ?? "acme";
    return {
      id,
      account,
      publisherRecord,
      sold: sold.get(id),
      posts,
      isCounted: posts.some(({ decision }) => decision === "counted"),
      entry: await store.acknowledgments.find(adResponseIdSchema.parse(id)),
      view: await lookUp(stack, id, account),
      erasure: stack.erasures.get(id),
    };
  });
  const metrics = new Map<AppId, Samples>();
  for (const app of stack.opsUrls.keys()) {
    metrics.set(app, await lastScrape(scraper, app));
  }
  return { ads, metrics };
}

const LAST_READ_TIMEOUT_MS = 30_000;

/** While an app reconnects to Redis, a scrape has no counts of the ledger. That must end soon. */
async function lastScrape(scraper: Scraper, app: AppId): Promise<Samples> {
  const scrapeOnce = async () => {
    const samples = await scraper.scrape(app);
    if (samples === undefined) {
      throw new TypeError(`${app} has no counts of the ledger`);
    }
    return samples;
  };
  return eventually(scrapeOnce, LAST_READ_TIMEOUT_MS).catch(() => new Map());
}

/** A 503 means that Redis stalled for a moment: the call is repeated. */
async function lookUp(
  { gatewayUrls, publishers }: ChaosStack,
  id: string,
  account: Account,
): Promise<View | undefined> {
  const [gateway = ""] = gatewayUrls;
  const { status, body } = await eventually(async () => {
    const answer = await relayCaller(gateway, publishers.keyOf(account)).lookUp(id);
    if (answer.status === 503) {
      throw new TypeError("the look-up got a 503");
    }
    return answer;
  }, LAST_READ_TIMEOUT_MS);
  return status === 404
    ? undefined
    : {
        state: status === 200 ? body["state"] : status,
        ackId: body["ad_ack_id"],
        attempts: body["attempts"],
      };
}

async function mapConcurrently<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = items.values();
  const lane = async () => {
    for (const item of left) {
      results.push(await work(item));
    }
  };
  await Promise.all(Array.from({ length: CONCURRENT_LOOK_UPS }, lane));
  return results;
}

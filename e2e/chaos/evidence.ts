/** All that is known of each ad response in the end, from every side. */

import { adResponseIdSchema } from "@adrelay/contract";
import { type LedgerEntry, openStore } from "@adrelay/store";
import { eventually, relayCaller, type Samples } from "@adrelay/testkit";
import type { Account, AppId } from "./fault.ts";
import type { AdRecord, LaneRecords } from "./lane-record.ts";
import type { AckPost, SoldAd } from "./provider-books.ts";
import type { Scraper } from "./scraper.ts";
import { CALLER_KEYS, type World } from "./world.ts";

export interface AdEvidence {
  readonly id: string;
  readonly account: Account;
  /** What its publisher knows; undefined if the answer to its injection got lost. */
  readonly lane: AdRecord | undefined;
  /** What the provider knows. */
  readonly sold: SoldAd | undefined;
  readonly posts: readonly AckPost[];
  readonly isTaken: boolean;
  /** What the ledger and the public look-up know; undefined if nothing. */
  readonly entry: LedgerEntry | undefined;
  readonly view: View | undefined;
}

/** The look-up's answer. */
interface View {
  readonly state: unknown;
  readonly ackId: unknown;
  readonly attempts: unknown;
}

export interface Evidence {
  readonly ads: readonly AdEvidence[];
  readonly metrics: ReadonlyMap<AppId, Samples>;
}

const LOOK_UPS_AT_ONCE = 16;

export async function gatherEvidence(
  world: World,
  records: LaneRecords,
  scraper: Scraper,
): Promise<Evidence> {
  const store = openStore({ redis: world.admin, recordRetentionMs: 1 });
  const { sold, acknowledgments } = world.provider;
  const ids = [...new Set([...records.ads.keys(), ...sold.keys(), ...acknowledgments.keys()])];
  const ads = await mapInLanes(ids, async (id): Promise<AdEvidence> => {
    const lane = records.ads.get(id);
    const posts = acknowledgments.get(id) ?? [];
    const account = lane?.account ?? sold.get(id)?.account ?? "acme";
    return {
      id,
      account,
      lane,
      sold: sold.get(id),
      posts,
      isTaken: posts.some(({ verdict }) => verdict === "taken"),
      entry: await store.acknowledgments.find(adResponseIdSchema.parse(id)),
      view: await lookUp(world, id, account),
    };
  });
  const metrics = new Map<AppId, Samples>();
  for (const app of world.opsUrls.keys()) {
    metrics.set(app, await scrapeInTheEnd(scraper, app));
  }
  return { ads, metrics };
}

const LAST_LOOK_TIMEOUT_MS = 30_000;

/** A scrape may come without the ledger's counts while a connection is made anew, but not for ever. */
async function scrapeInTheEnd(scraper: Scraper, app: AppId): Promise<Samples> {
  const wanted = async () => {
    const samples = await scraper.scrape(app);
    if (samples === undefined) {
      throw new TypeError(`${app} has no counts of the ledger`);
    }
    return samples;
  };
  return eventually(wanted, LAST_LOOK_TIMEOUT_MS).catch(() => new Map());
}

/** A Redis that stalls for a moment is a 503, as callers are told; asked again, the answer is what counts. */
async function lookUp({ gatewayUrls }: World, id: string, account: Account): Promise<View | undefined> {
  const [gateway = ""] = gatewayUrls;
  const { status, body } = await eventually(async () => {
    const answer = await relayCaller(gateway, CALLER_KEYS[account]).lookUp(id);
    if (answer.status === 503) {
      throw new TypeError("the ledger could not be asked");
    }
    return answer;
  }, LAST_LOOK_TIMEOUT_MS);
  return status === 404
    ? undefined
    : {
        state: status === 200 ? body["state"] : status,
        ackId: body["ad_ack_id"],
        attempts: body["attempts"],
      };
}

async function mapInLanes<T, R>(items: readonly T[], work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const left = items.values();
  const lane = async () => {
    for (const item of left) {
      results.push(await work(item));
    }
  };
  await Promise.all(Array.from({ length: LOOK_UPS_AT_ONCE }, lane));
  return results;
}

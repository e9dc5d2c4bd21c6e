/** After the faults: waits until nothing is under way any more. */

import { adResponseIdSchema } from "@adrelay/contract";
import { openStore } from "@adrelay/store";
import { eventually, type Samples, sumOf } from "@adrelay/testkit";
import type { LaneRecords } from "./lane-record.ts";
import type { Scraper } from "./scraper.ts";
import { ADMIN_TOKEN, type World } from "./world.ts";

/** Raised while something is under way. */
class UnsettledError extends Error {
  override readonly name = "UnsettledError";
}

/** Resolves to what was still under way after `timeoutMs`; undefined if nothing was. */
export async function settle(scraper: Scraper, timeoutMs: number): Promise<string | undefined> {
  try {
    await eventually(async () => {
      const samples = await scraper.scrape("gateway-1");
      const open = samples === undefined ? "no metrics" : openWork(samples);
      if (open !== "") {
        throw new UnsettledError(open);
      }
    }, timeoutMs);
    return undefined;
  } catch (error) {
    return error instanceof Error ? error.message : String(error);
  }
}

function openWork(samples: Samples): string {
  const jobs = (state: string) => sumOf(samples, "adrelay_queue_jobs", { state });
  const inState = (state: string) => sumOf(samples, "adrelay_acknowledgments", { state });
  const open = {
    awaiting: inState("awaiting"),
    queued: inState("queued"),
    "jobs waiting": jobs("waiting"),
    "jobs active": jobs("active"),
    "jobs delayed": jobs("delayed"),
    "payloads to be moved": jobs("failed") - inState("dead"),
  };
  return Object.entries(open)
    .filter(([, count]) => count !== 0)
    .map(([what, count]) => `${what}: ${count}`)
    .join(", ");
}

/**
 * Replays all dead letters that died of the faults alone, as an operator would: the provider is well again,
 * so each must be delivered now. Answers how many there were.
 */
export async function replayExhausted(world: World, records: LaneRecords): Promise<number> {
  const store = openStore({ redis: world.admin, recordRetentionMs: 1 });
  let replayed = 0;
  for (const { id } of records.ads.values()) {
    const entry = await store.acknowledgments.find(adResponseIdSchema.parse(id));
    if (entry?.state === "dead" && entry.death.reason === "exhausted") {
      await replay(world, id);
      replayed += 1;
    }
  }
  return replayed;
}

async function replay(world: World, id: string): Promise<void> {
  const url = `${world.opsUrls.get("gateway-1")}/admin/v1/acknowledgments/${id}/replay`;
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const { status } = await fetch(url, { method: "POST", headers });
  if (status !== 200) {
    throw new UnsettledError(`the replay of ${id} was answered ${status}`);
  }
}

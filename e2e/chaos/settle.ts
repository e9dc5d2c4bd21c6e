/** Waits after the faults until no work is left, and replays dead letters of the faults. */

import { adResponseIdSchema } from "@adrelay/contract";
import { openStore } from "@adrelay/store";
import { eventually, type Samples, sumOf } from "@adrelay/testkit";
import type { PublisherRecords } from "./publisher-records.ts";
import type { Scraper } from "./scraper.ts";
import { ADMIN_TOKEN, type ChaosStack } from "./stack.ts";

/** Some work is not done yet. */
class UnsettledError extends Error {
  override readonly name = "UnsettledError";
}

/** Resolves to the work that was left after `timeoutMs`, or to undefined as soon as none is left. */
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
    "payloads of ended acknowledgments": jobs("failed") - inState("dead"),
  };
  return Object.entries(open)
    .filter(([, count]) => count !== 0)
    .map(([what, count]) => `${what}: ${count}`)
    .join(", ");
}

/**
 * Replays all dead letters with the reason `exhausted`, as an operator would. They died only because of the faults, so
 * each must be delivered now. Resolves to how many there were.
 */
export async function replayExhausted(stack: ChaosStack, records: PublisherRecords): Promise<number> {
  const store = openStore({ redis: stack.admin, recordRetentionMs: 1 });
  let replayed = 0;
  for (const { id } of records.ads.values()) {
    const entry = await store.acknowledgments.find(adResponseIdSchema.parse(id));
    if (entry?.state === "dead" && entry.death.reason === "exhausted") {
      await replay(stack, id);
      replayed += 1;
    }
  }
  return replayed;
}

async function replay(stack: ChaosStack, id: string): Promise<void> {
  const url = `${stack.opsUrls.get("gateway-1")}/admin/v1/acknowledgments/${id}/replay`;
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const { status } = await fetch(url, { method: "POST", headers });
  if (status !== 200) {
    throw new UnsettledError(`the replay of ${id} got ${status}`);
  }
}

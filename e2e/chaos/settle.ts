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

/** Resolves to the work that was left after `timeoutMs`, or to undefined as soon as none is left. Any replica tells. */
export async function settle(
  scraper: Scraper,
  timeoutMs: number,
  app = "gateway-1",
): Promise<string | undefined> {
  try {
    await eventually(async () => {
      const samples = await scraper.scrape(app);
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
    turns: sumOf(samples, "adrelay_turns_open"),
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

/** Reasons for which an acknowledgment may die of faults: only at its age. */
const AGE_REASONS: ReadonlySet<string | undefined> = new Set(["exhausted", "blocked", "forbidden"]);
/** An attempt begins when the age is reached by the worker's clock, which may be off. */
const AGE_TOLERANCE_MS = 1000;

export interface Replayed {
  readonly count: number;
  /** Those that died before their age. */
  readonly early: readonly string[];
}

/**
 * Replays all dead letters that died of age, as an operator would. They died only because of the faults, so each must be
 * delivered now.
 */
export async function replayAged(
  stack: ChaosStack,
  records: PublisherRecords,
  ageMaxMs: number,
): Promise<Replayed> {
  const store = openStore({ redis: stack.admin, recordRetentionMs: 1 });
  const early: string[] = [];
  let count = 0;
  for (const { id } of records.ads.values()) {
    const entry = await store.acknowledgments.find(adResponseIdSchema.parse(id));
    if (entry?.state === "dead" && AGE_REASONS.has(entry.death.reason)) {
      const ageMs = (entry.endedAtMs ?? 0) - entry.queuedAtMs;
      if (ageMs < ageMaxMs - AGE_TOLERANCE_MS) {
        early.push(`${id}: dead as ${entry.death.reason} after ${ageMs} ms`);
      }
      await replay(stack, id);
      count += 1;
    }
  }
  return { count, early };
}

async function replay(stack: ChaosStack, id: string): Promise<void> {
  const url = `${stack.opsUrls.get("gateway-1")}/admin/v1/acknowledgments/${id}/replay`;
  const headers = { Authorization: `Bearer ${ADMIN_TOKEN}` };
  const { status } = await fetch(url, { method: "POST", headers });
  if (status !== 200) {
    throw new UnsettledError(`the replay of ${id} got ${status}`);
  }
}

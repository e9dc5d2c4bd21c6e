import type { DeadLetters, Ledger } from "@adrelay/ledger";
import { doPayloadWork, type PayloadWorkDeps } from "./payload-work.ts";

export interface SweepDeps extends PayloadWorkDeps {
  readonly ledger: Ledger;
  /** True while the process stops: a round ends at the next batch. */
  isStopping(): boolean;
  readonly deadLetterRetentionMs: number;
}

/** Ids per script: keeps each script well below a millisecond or two. */
const BATCH = 200;
/** Batches per round, so that one round is bounded and a stop is quick. */
const BATCHES_PER_ROUND = 50;
/** Payload work that an attempt holds up, or whose worker died, comes up again after this. */
const PAYLOAD_LEASE_MS = 1000;

/** One round: deadlines that passed, dead letters past retention, and what these left to do in the queue. */
export function makeSweep(deps: SweepDeps): () => Promise<void> {
  const { ledger, log, deadLetterRetentionMs } = deps;
  const indexDead = makeIndexDead(deps.deadLetters);
  return async () => {
    const missed = await inBatches(() => ledger.sweepMissed(BATCH));
    const expired = await inBatches(() => ledger.sweepExpired(BATCH, deadLetterRetentionMs));
    if (missed > 0 || expired > 0) {
      log.warn({ event: "swept", missed, expired });
    }
    await indexDead();
    await sweepPayloadWork(deps);
  };
}

/**
 * Workers of an older version, side by side with this one, index no dead letters by publisher and reason. A
 * round goes on where the last one ended, so that however many letters there are, all get their turn.
 */
function makeIndexDead(deadLetters: DeadLetters): () => Promise<void> {
  let rank: number | undefined;
  return async () => {
    for (let round = 0; round < BATCHES_PER_ROUND; round += 1) {
      rank = await deadLetters.indexMissing(rank ?? 0, BATCH);
      if (rank === undefined || rank === 0) {
        break;
      }
    }
  };
}

async function inBatches(sweep: () => Promise<number>): Promise<number> {
  let total = 0;
  for (let round = 0; round < BATCHES_PER_ROUND; round += 1) {
    const found = await sweep();
    total += found;
    if (found < BATCH) {
      break;
    }
  }
  return total;
}

/** Goes through all work that is due; what has to wait comes up again in a later round. */
async function sweepPayloadWork(deps: SweepDeps): Promise<void> {
  for (let round = 0; round < BATCHES_PER_ROUND && !deps.isStopping(); round += 1) {
    const works = await deps.deadLetters.takePayloadWork(BATCH, PAYLOAD_LEASE_MS);
    await doPayloadWork(deps, works);
    if (works.length < BATCH) {
      break;
    }
  }
}

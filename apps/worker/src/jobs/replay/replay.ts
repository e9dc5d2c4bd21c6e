/**
 * Takes bulk replays further, a little at a time. The step in Redis decides how much and counts it
 * (replay-batch.lua); here is its rhythm, and the queue's part of what was moved.
 *
 * Every worker does this and none owns a replay. What a killed one has moved and not requeued has notes of
 * payload work, which the sweep of any worker picks up once the grace is over.
 */
import type { Replays } from "@adrelay/ledger";
import { doPayloadWork, type PayloadWorkDeps } from "../sweep/payload-work.ts";

export interface ReplayJobDeps extends PayloadWorkDeps {
  /** True while the process stops: a round ends at the next step. */
  isStopping(): boolean;
  readonly replays: Replays;
}

/** Letters a step: keeps its script at a few milliseconds. */
const BATCH = 100;
/** Steps of one replay in a row before others get their turn. */
const STEPS_PER_TURN = 20;
const GRACE_MS = 3000;

/** The pause after a round in which something ran, and after one in which nothing did. */
const BUSY_PAUSE_MS = 100;
export const IDLE_PAUSE_MS = 1000;

/** One round over all running replays; answers how long to pause. */
export async function replayOnce(deps: ReplayJobDeps): Promise<number> {
  const running = await deps.replays.running();
  for (const id of running) {
    await takeFurther(deps, id);
  }
  return running.length > 0 ? BUSY_PAUSE_MS : IDLE_PAUSE_MS;
}

async function takeFurther(deps: ReplayJobDeps, id: string): Promise<void> {
  // The queue's part of one step goes on beside the next step in the ledger.
  let inQueue: Promise<unknown> = Promise.resolve();
  for (let step = 0; step < STEPS_PER_TURN && !deps.isStopping(); step += 1) {
    const [{ state, moved }] = await Promise.all([deps.replays.runBatch(id, BATCH, GRACE_MS), inQueue]);
    inQueue = doPayloadWork(deps, moved);
    if (state === "completed") {
      deps.log.info({ event: "replay_completed", replay_id: id });
    }
    if (state !== "running" || moved.length < BATCH) {
      break;
    }
  }
  await inQueue;
}

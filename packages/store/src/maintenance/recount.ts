/**
 * Recounts how much memory each publisher's acknowledgments take (redis/stored-bytes.lua). The first recount measures what an
 * older version accepted; each further one mends what an older version that ran meanwhile left behind.
 */
import { z } from "zod";
import type { DeliveryQueue } from "../bullmq/queue.ts";
import { idOf, type StoreKeys } from "../redis/keys.ts";
import type { RunScript } from "../redis/scripts.ts";

export interface RecountParts {
  readonly run: RunScript;
  readonly keys: StoreKeys;
  readonly queue: Pick<DeliveryQueue, "payloadKey">;
}

/** Keeps each script below a millisecond or two. */
const BATCH = 100;
/** A round recounts some thousand entries a second. */
const STEPS_PER_ROUND = 20;
const JOB_BYTES_MAX = 2 * 1024 * 1024;
const PAUSE_MS = 3_600_000;

/** A number, an index, and ids with their times. */
const stepSchema = z.array(z.string());

export class Recount {
  readonly #parts: RecountParts;

  constructor(parts: RecountParts) {
    this.#parts = parts;
  }

  /** Does some steps of the recount that runs, or begins one if it is time. */
  async runRound(pauseMs: number = PAUSE_MS): Promise<void> {
    let step: readonly string[] = [];
    for (let done = 0; done <= STEPS_PER_ROUND; done += 1) {
      step = await this.#next(step, pauseMs);
      if (step.length <= 2) {
        return;
      }
    }
  }

  async #next([number = "", index = "", ...entries]: readonly string[], pauseMs: number): Promise<string[]> {
    const { run, keys, queue } = this.#parts;
    const args: (string | number)[] = [BATCH, pauseMs, keys.entryPrefix, JOB_BYTES_MAX, number, index];
    for (let at = 0; at + 1 < entries.length; at += 2) {
      const [member = "", time = ""] = entries.slice(at, at + 2);
      args.push(member, time, queue.payloadKey(idOf(member)));
    }
    return stepSchema.parse(await run("maintenance/recount", { keys: keys.forEntry(""), args }));
  }
}

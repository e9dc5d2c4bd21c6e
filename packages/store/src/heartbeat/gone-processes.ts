/**
 * Returns the jobs of processes that are gone to the waiting jobs. Every worker looks for such processes again and again;
 * of each one, the jobs are returned once. They wait again long before their locks would run out.
 */
import { z } from "zod";
import type { ReturnJobsScript } from "../bullmq/return-jobs.ts";
import type { StoreKeys } from "../redis/keys.ts";
import type { Script, ScriptLibrary, ScriptRunner } from "../redis/scripts.ts";
import type { StoreLog } from "../store-log.ts";
import { parseRecord } from "./process-record.ts";

export interface GoneProcessesParts {
  readonly scripts: ScriptRunner;
  readonly library: ScriptLibrary;
  readonly keys: StoreKeys;
  readonly returnJobs: ReturnJobsScript;
  /** This process' own. */
  readonly processId: string;
  readonly log: StoreLog;
}

const replySchema = z.array(z.tuple([z.string(), z.number()]));

export class GoneProcesses {
  readonly #parts: GoneProcessesParts;
  readonly #script: Script;

  constructor(parts: GoneProcessesParts) {
    this.#parts = parts;
    this.#script = parts.library.compose("heartbeat/return-jobs", {
      "bullmq/return-jobs": parts.returnJobs.lua,
    });
  }

  /** Returns the jobs of processes that are gone to the waiting jobs, and removes their records. */
  async returnJobs(): Promise<void> {
    const { scripts, keys, returnJobs, processId, log } = this.#parts;
    const reply = await scripts.runScript(this.#script, {
      keys: [...keys.forHeartbeat.slice(0, 2), ...returnJobs.keys],
      args: [keys.lifelinePrefix, returnJobs.jobPrefix, processId],
    });
    for (const [stored, jobs] of replySchema.parse(reply)) {
      const { role, host, pid, version } = parseRecord(stored) ?? {};
      log.warn({ event: "process_gone", role, host, pid, version, jobs });
    }
  }
}

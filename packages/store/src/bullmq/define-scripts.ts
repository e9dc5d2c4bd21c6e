/**
 * Defines BullMQ's scripts with two changes:
 *
 * 1. They run on a full Redis, as ours do (redis/when-full.lua). Otherwise a worker could fetch no job then, so nothing
 *    would leave the queue and Redis would stay full.
 * 2. Those that fetch a job leave a large body in Redis (bullmq/leave-payload.lua). Otherwise a worker would hold the
 *    bodies of all jobs that it holds.
 */

import installed from "bullmq/package.json" with { type: "json" };
import type { Redis } from "ioredis";
import type { ScriptLibrary } from "../redis/scripts.ts";
import { fetchesJob, loadShippedScripts } from "./shipped-scripts.ts";

/** Scripts that only read also run on a replica, where a write would be refused. */
const READS_ONLY = /^(?:get|is|paginate)/;

/**
 * Defines BullMQ's scripts on a connection before BullMQ does so. It defines none that the connection has already. To be
 * called before a queue or a worker gets the connection.
 */
export function defineScripts(redis: Redis, library: ScriptLibrary): void {
  const whenFull = library.load("redis/when-full").source;
  const leavePayload = library.load("bullmq/leave-payload").source;
  for (const { name, content, keys } of Object.values(loadShippedScripts())) {
    if (!READS_ONLY.test(name)) {
      const lua = fetchesJob(content)
        ? `${leavePayload}local function fetchJob()\n${content}\nend\nreturn leavePayload(fetchJob())`
        : content;
      redis.defineCommand(`${name}:${installed.version}`, { numberOfKeys: keys, lua: whenFull + lua });
    }
  }
}

/**
 * Makes BullMQ's scripts run on a full Redis, as ours do (redis/when-full.lua). Otherwise a worker could fetch no job
 * then, so nothing would leave the queue and Redis would stay full.
 */

import installed from "bullmq/package.json" with { type: "json" };
import type { Redis } from "ioredis";
import type { ScriptLibrary } from "../redis/scripts.ts";
import { loadShippedScripts } from "./shipped-scripts.ts";

/** Scripts that only read also run on a replica, where a write would be refused. */
const READS_ONLY = /^(?:get|is|paginate)/;

/**
 * Defines BullMQ's scripts on a connection before BullMQ does so. It defines none that the connection has already. To be
 * called before a queue or a worker gets the connection.
 */
export function runWhenFull(redis: Redis, library: ScriptLibrary): void {
  const { source } = library.load("redis/when-full");
  for (const { name, content, keys } of Object.values(loadShippedScripts())) {
    if (!READS_ONLY.test(name)) {
      redis.defineCommand(`${name}:${installed.version}`, { numberOfKeys: keys, lua: source + content });
    }
  }
}

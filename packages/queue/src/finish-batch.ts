/**
 * Finishes the jobs of one turn of the event loop, and fetches the next ones, in one script. The script is BullMQ's own,
 * run once for each job: nothing of what it does is known here but how many keys it takes.
 */
import { type BackendFactory, createRedisBackend, type RedisQueueBackend, raw2NextJobData } from "bullmq";
import type { Redis } from "ioredis";
import { createRequire } from "node:module";
import { createHash } from "node:crypto";
import { z } from "zod";
import { TurnBatch } from "./turn-batch.ts";

const { moveToFinished } = z
  .object({ moveToFinished: z.object({ content: z.string(), keys: z.literal(14) }) })
  .parse(createRequire(import.meta.url)("bullmq/dist/cjs/scripts/moveToFinished-14.js"));

const KEYS_EACH = moveToFinished.keys;
const ARGS_EACH = 9;

const SOURCE = `
local allKeys, allArgs = KEYS, ARGV
local function finishJob(KEYS, ARGV)
${moveToFinished.content}
end
local replies = {}
for at = 1, #allArgs / ${ARGS_EACH} do
  local keys = {unpack(allKeys, ${KEYS_EACH} * (at - 1) + 1, ${KEYS_EACH} * at)}
  local args = {unpack(allArgs, ${ARGS_EACH} * (at - 1) + 1, ${ARGS_EACH} * at)}
  local ok, reply = pcall(finishJob, keys, args)
  replies[at] = (ok or type(reply) == 'table') and reply or {err = reply}
end
return replies
`;
const SHA = createHash("sha1").update(SOURCE).digest("hex");

type Args = (string | number | Buffer)[];

export const createBatchingBackend: BackendFactory<RedisQueueBackend> = (name, opts, more) => {
  const backend = createRedisBackend(name, opts, more);
  const batch = new TurnBatch<Args, unknown>(async (items) => {
    const client = (await backend.client) as unknown as Redis;
    const keys = items.flatMap((args) => args.slice(0, KEYS_EACH)) as string[];
    const args = items.flatMap((args) => {
      const own = args.slice(KEYS_EACH);
      own[8] ??= "";
      return own;
    });
    try {
      return (await client.evalsha(SHA, keys.length, ...keys, ...args)) as unknown[];
    } catch (error) {
      if (error instanceof Error && error.message.startsWith("NOSCRIPT")) {
        return (await client.eval(SOURCE, keys.length, ...keys, ...args)) as unknown[];
      }
      throw error;
    }
  });
  backend.moveToFinished = async (jobId, args) => {
    const reply = await batch.ask([...args] as Args);
    if (typeof reply === "number" && reply < 0) {
      throw backend.finishedErrors({ code: reply, jobId, command: "moveToFinished", state: "active" });
    }
    return raw2NextJobData(reply as never);
  };
  return backend;
};

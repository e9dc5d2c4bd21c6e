/**
 * Puts a job on the queue from within a script of somebody else's, so that both take effect in one step. BullMQ's own
 * script does it, as it is in the package: nothing of it is copied here. What is handed to it is asked of BullMQ too,
 * once. test/insertion.test.ts compares every key of Redis, but for the events, with what BullMQ leaves: that is the guard
 * at upgrades.
 */
import { type IRedisTransaction, Job, type JobsOptions, type Queue } from "bullmq";
import { z } from "zod";
import { asFunction, loadShippedScript, luaText } from "./shipped-script.ts";

/** What another script needs in order to queue jobs. */
export interface QueueInsertion {
  /**
   * Lua that defines `queueJob(keys, prefix, id, name, data, timestamp)`. It adds the job, unless there is one with
   * this id: that one stays. Returns the name of the job that the queue holds then. Raises what Redis raises.
   */
  readonly lua: string;
  /** `keys`: all in the queue's partition. */
  readonly keys: readonly string[];
  /** `prefix`: before a job's id it makes the key of its payload. */
  readonly jobPrefix: string;
}

/** This BullMQ adds jobs in another way than the relay knows. */
export class InsertionError extends Error {
  override readonly name = "InsertionError";
}

const KEY_COUNT = 9;
/** Keys, packed arguments, data, packed options. */
const commandSchema = z.object({
  name: z.string().startsWith("addStandardJob:"),
  args: z.array(z.unknown()).length(KEY_COUNT + 3),
});
const keysSchema = z.array(z.string());
const packedSchema = z.instanceof(Uint8Array);

/** Asks BullMQ how it adds a job with these options; nothing is sent to Redis. */
export function learnInsertion(queue: Queue, options: JobsOptions): QueueInsertion {
  try {
    const addStandardJob = loadShippedScript("addStandardJob", KEY_COUNT);
    const { args } = commandSchema.parse(recordAdd(queue, options));
    const lua = insertionLua(addStandardJob, packedSchema.parse(args.at(-1)));
    return { lua, keys: keysSchema.parse(args.slice(0, KEY_COUNT)), jobPrefix: queue.toKey("") };
  } catch (cause) {
    throw new InsertionError("this version of BullMQ adds jobs in a way that the relay doesn't know", {
      cause,
    });
  }
}

/** The command that BullMQ would send. */
function recordAdd(queue: Queue, options: JobsOptions): unknown {
  const recorded: { command: unknown } = { command: undefined };
  const recorder = {
    runCommand: (name: string, args: unknown[]) => {
      recorded.command = { name, args };
    },
  };
  // All that adding a job asks of a transaction.
  const added = new Job(queue, "name", {}, { ...options }, "id").addJob(
    recorder as unknown as IRedisTransaction,
  );
  added.catch(() => {});
  return recorded.command;
}

const OWN_FUNCTIONS = { from: "\n-- Includes", to: "\nif parentKey ~= nil then" };

function insertionLua(addStandardJob: string, packedOptions: Uint8Array): string {
  return `local addStandardJob = ${asFunction(addStandardJob, OWN_FUNCTIONS)}
local jobOptions = cmsgpack.unpack(${luaText(packedOptions)})
local function queueJob(keys, prefix, id, name, data, timestamp)
  addStandardJob(keys, {{prefix, id, name, timestamp}, data, jobOptions})
  return redis.call('HGET', prefix .. id, 'name')
end
`;
}

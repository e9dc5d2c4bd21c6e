/**
 * Finishes a job and fetches the next one from within a script of somebody else's, so that what belongs to the job's end
 * takes effect in the same step. It is BullMQ's own script: what it does, and what it is told, stays BullMQ's business.
 *
 * BullMQ makes the arguments, once. Those of other jobs differ by the job, its lock's token and whether a next one is
 * wanted, since all that are finished here are removed and have no result.
 */
import { DELIVERY_JOB_VERSION } from "@adrelay/contract";
import { asFunction, loadShippedScript, luaText } from "./shipped-script.ts";

/** What another script needs in order to finish jobs. */
export interface QueueCompletion {
  /**
   * Lua that defines
   * - `finishJob(keys, prefix, id, token, fetchNext, timestamp)`, which finishes a job, and fetches another one if
   *   `fetchNext` is `1`. Answers as BullMQ's script does; raises what Redis raises. It writes to `keys`.
   * - `fetchedJob(answer)`, which returns the ad response and the text's fingerprint of the job that came with such an
   *   answer. No ad response if there is no job, or if its data aren't written as this version writes them.
   */
  readonly lua: string;
  /** `keys`: all in the queue's partition. */
  readonly keys: readonly string[];
  /** `prefix`: before a job's id it makes the key of its payload. */
  readonly jobPrefix: string;
}

const KEY_COUNT = 14;
/** Where BullMQ's script has the job's key among its keys, and what else is the job's own among its arguments. */
const JOB_KEY_AT = 12;
const ARGS_AT = { jobId: 1, timestamp: 2, fetchNext: 6, options: 8 } as const;

/** Throws if this BullMQ finishes jobs by another script, or by one that takes another number of keys. */
export function loadFinishScript(): string {
  return loadShippedScript("moveToFinished", KEY_COUNT);
}

/** `command`: keys and arguments as BullMQ makes them for one of the jobs. */
export function makeCompletion(
  finishScript: string,
  command: readonly unknown[],
  jobPrefix: string,
): QueueCompletion {
  const own: readonly number[] = [ARGS_AT.jobId, ARGS_AT.timestamp];
  // Everything else that the script is told is the same for all jobs, so it stands in its text.
  const args = command
    .slice(KEY_COUNT)
    .map((value, at) => luaText(bytesOf(own.includes(at + 1) ? "" : value)));
  const lua = `local moveToFinished = ${asFunction(finishScript, OWN_FUNCTIONS)}
local finishArgs = {${args.join(", ")}}
local finishOptions = cmsgpack.unpack(finishArgs[${ARGS_AT.options}])
finishArgs[${ARGS_AT.options}] = finishOptions
local function finishJob(keys, prefix, id, token, fetchNext, timestamp)
  keys[${JOB_KEY_AT}] = prefix .. id
  finishOptions['token'] = token
  finishArgs[${ARGS_AT.jobId}], finishArgs[${ARGS_AT.timestamp}], finishArgs[${ARGS_AT.fetchNext}] = id, timestamp, fetchNext
  return moveToFinished(keys, finishArgs)
end
${FETCHED_JOB}`;
  const keys = command
    .slice(0, KEY_COUNT)
    .map(String)
    .with(JOB_KEY_AT - 1, jobPrefix);
  return { lua, keys, jobPrefix };
}

const OWN_FUNCTIONS = { from: "", to: "\nlocal jobIdKey = KEYS[" };

/** Of an answer's first member, the job's fields and values. A job's data begin with the version and the ad response. */
const FETCHED_JOB = `local function fetchedJob(answer)
  local fields = type(answer) == 'table' and answer[1]
  if type(fields) ~= 'table' then
    return
  end
  local id, name
  for at = 1, #fields, 2 do
    if fields[at] == 'data' then
      id = string.match(fields[at + 1], '^{"v":${DELIVERY_JOB_VERSION},"adResponseId":"([%x-]+)"')
    elseif fields[at] == 'name' then
      name = fields[at + 1]
    end
  end
  return id, name
end
`;

/** An argument as it goes to Redis. */
function bytesOf(value: unknown): Buffer {
  return Buffer.isBuffer(value) ? value : Buffer.from(String(value ?? ""));
}

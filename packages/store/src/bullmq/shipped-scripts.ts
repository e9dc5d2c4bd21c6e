/** BullMQ's own scripts, as its package has them, to be run from within our scripts. Nothing of them is copied here. */
import { createRequire } from "node:module";
import { z } from "zod";

const shippedSchema = z.record(
  z.string(),
  z.object({ name: z.string(), content: z.string(), keys: z.number() }),
);
type ShippedScripts = z.infer<typeof shippedSchema>;

/** All scripts of BullMQ. Throws if it ships them in another form. */
export function loadShippedScripts(): ShippedScripts {
  // BullMQ itself loads its scripts from this module. It exports them nowhere else.
  return shippedSchema.parse(createRequire(import.meta.url)("bullmq/dist/cjs/scripts/index.js"));
}

/** The Lua text of a script. Throws if BullMQ ships none of this name, or one that takes another number of keys. */
export function loadShippedScript(name: string, keyCount: number): string {
  return z.object({ content: z.string(), keys: z.literal(keyCount) }).parse(loadShippedScripts()[name])
    .content;
}

/** Whether a script may reply with a job that it fetched. */
export function fetchesJob(shipped: string): boolean {
  return shipped.includes("function prepareJobForProcessing(");
}

/** Bytes as a Lua string literal, quotes included. */
export function luaText(bytes: Uint8Array): string {
  return `'${[...bytes].map((byte) => `\\${String(byte).padStart(3, "0")}`).join("")}'`;
}

/** How BullMQ's scripts write to the queue's stream of events, and trim it. */
const EVENT_COMMAND = /\brcall\("(?:XADD|XTRIM)",/g;
/** How they read the length to which it is trimmed. BullMQ's default is put in its place. */
const EVENTS_MAX = /\brcall\("HGET", metaKey, "opts\.maxLenEvents"\)/g;

/**
 * A script as a Lua expression that is a function of KEYS and ARGV. Where BullMQ's script unpacks an argument from
 * msgpack, a table may be handed over as it is. It writes no events: nobody here reads them.
 */
export function asFunction(shipped: string): string {
  const script = shipped.replaceAll(EVENT_COMMAND, "writeNoEvent(").replaceAll(EVENTS_MAX, "10000");
  return `(function()
local rcall = redis.call
local function writeNoEvent() end
local packed = cmsgpack
local cmsgpack = setmetatable({unpack = function(argument)
  return type(argument) == 'table' and argument or packed.unpack(argument)
end}, {__index = packed})
return function(KEYS, ARGV)
${script}
end
end)()`;
}

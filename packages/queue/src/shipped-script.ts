/** BullMQ's own scripts as its package has them, to be run from within scripts of ours: nothing of them is copied here. */
import { createRequire } from "node:module";
import { z } from "zod";

/** The Lua text of a script. Throws if BullMQ ships none of this name, or one that takes another number of keys. */
export function loadShippedScript(name: string, keyCount: number): string {
  // BullMQ loads them from here itself, and exports them under no other name.
  const scripts: unknown = createRequire(import.meta.url)("bullmq/dist/cjs/scripts/index.js");
  const script = z.object({ content: z.string(), keys: z.literal(keyCount) });
  return script.parse(z.record(z.string(), z.unknown()).parse(scripts)[name]).content;
}

/** Bytes as a text of Lua, quotes included. */
export function luaText(bytes: Uint8Array): string {
  return `'${[...bytes].map((byte) => `\\${String(byte).padStart(3, "0")}`).join("")}'`;
}

/** Where a script defines its own functions: from the one text on, up to the other. None of them reads keys or arguments. */
export interface OwnFunctions {
  readonly from: string;
  readonly to: string;
}

/** How BullMQ's scripts write to the queue's stream of events, and keep it short. */
const EVENT_COMMAND = /\brcall\("(?:XADD|XTRIM)",/g;
/** How they ask how short; BullMQ's default is the answer. */
const EVENTS_MAX = /\brcall\("HGET", metaKey, "opts\.maxLenEvents"\)/g;

/**
 * A script as an expression of Lua that is a function. BullMQ's script reads what it is given from KEYS and ARGV: here they
 * are the function's parameters. Its own functions are made once for all jobs of a call, a fifteenth of what a job
 * costs; a script that is written in another way stays whole.
 *
 * Where BullMQ's script unpacks an argument, a table may be handed to it as it is. It tells of no events: nothing here reads
 * them, and they were a twelfth of what a delivery cost Redis (docs/adr/0028).
 */
export function asFunction(shipped: string, { from, to }: OwnFunctions): string {
  const script = shipped.replaceAll(EVENT_COMMAND, "tellNobody(").replaceAll(EVENTS_MAX, "10000");
  const fromAt = script.indexOf(from);
  const toAt = script.indexOf(to, fromAt);
  const [start, end] = fromAt < 0 || toAt < 0 ? [0, 0] : [fromAt, toAt];
  return `(function()
local rcall = redis.call
local function tellNobody() end
local packed = cmsgpack
local cmsgpack = setmetatable({unpack = function(argument)
  return type(argument) == 'table' and argument or packed.unpack(argument)
end}, {__index = packed})
${script.slice(start, end)}
return function(KEYS, ARGV)
${script.slice(0, start)}
${script.slice(end)}
end
end)()`;
}

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

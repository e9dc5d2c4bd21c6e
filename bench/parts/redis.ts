/** What Redis is asked and what it keeps: commands and bytes of each step, and memory of an entry in each state. */
import type { Bench } from "../bench.ts";
import type { Figure } from "../figures/figure.ts";
import { measureCommands } from "./redis/commands.ts";
import { measureMemory } from "./redis/memory.ts";

export async function measureRedis(bench: Bench): Promise<Figure[]> {
  return [...(await measureCommands(bench)), ...(await measureMemory(bench))];
}

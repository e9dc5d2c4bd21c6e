/** Compares what counts against the publishers' quotas of Redis' memory with the entries themselves. */
import { openStore } from "@adrelay/store";
import type { ChaosStack } from "../stack.ts";
import { type Check, checkSums } from "./check.ts";

const ENTRY_KEYS = "{adrelay:0}:e:*";
const SCANNED = 1000;

/** To be called when no work is left, because it reads entries and counters one after the other. */
export async function checkStoredBytes({ admin }: Pick<ChaosStack, "admin">): Promise<Check> {
  const { storedBytes } = await openStore({ redis: admin, recordRetentionMs: 1 }).snapshot();
  const counted = new Map<string, number>(
    storedBytes.map(({ publisher, label, value }) => [`${publisher} ${label}`, value]),
  );
  const inEntries = await sumEntries(admin);
  const names = [...new Set([...counted.keys(), ...inEntries.keys()])];
  return checkSums(
    "the quotas of memory count what the entries take",
    names.map((name) => [name, counted.get(name) ?? 0, inEntries.get(name) ?? 0]),
  );
}

/** Of each publisher and quota: the bytes with which its queued and dead entries say that they count. */
async function sumEntries(admin: ChaosStack["admin"]): Promise<ReadonlyMap<string, number>> {
  const sums = new Map<string, number>();
  for await (const keys of admin.scanStream({ match: ENTRY_KEYS, count: SCANNED })) {
    // The same key may come twice in a scan of a table that is being resized. Nothing is written now.
    for (const key of new Set<string>(keys)) {
      const [state, publisher, stored] = await admin.hmget(key, "s", "p", "b");
      const [, kind, bytes] = /^\d+([ku])(\d+)$/.exec(stored ?? "") ?? [];
      if (state === "queued" || state === "dead") {
        const name = `${publisher} ${kind === "u" ? "unknown" : state}_bytes`;
        sums.set(name, (sums.get(name) ?? 0) + Number(bytes));
      }
    }
  }
  return sums;
}

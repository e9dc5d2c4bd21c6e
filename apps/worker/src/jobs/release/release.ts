import type { ProviderGates } from "@adrelay/ledger";
import type { ProviderGroup } from "@adrelay/provider";
import type { DeliveryQueue, PromoteResult } from "@adrelay/queue";
import type { Gatekeeper } from "../../gates/gatekeeper.ts";

export interface ReleaseDeps {
  readonly gates: ProviderGates;
  readonly gatekeeper: Gatekeeper;
  readonly groups: readonly ProviderGroup[];
  readonly queue: DeliveryQueue;
}

/** Every so many looks are at all accounts: with the pause between looks, some seconds. */
const LOOKS_PER_WIDE_ONE = 50;

/**
 * One look at the gates: brings back from the queue's delay what may go out now. Accounts that were busy at the
 * last look are looked at once more, so that this process learns that they aren't. The first look and one every
 * few seconds are at all: for a worker with other settings, before this one or beside it, an account may have
 * another name, and what it left waiting is under that.
 */
export function makeRelease({ gates, gatekeeper, groups, queue }: ReleaseDeps): () => Promise<void> {
  let busyBefore: ReadonlySet<string> = new Set(groups.map(({ name }) => name));
  let looks = 0;
  return async () => {
    const busy = await gates.busy();
    looks += 1;
    const isWide = looks % LOOKS_PER_WIDE_ONE === 0;
    for (const group of groups.filter(({ name }) => isWide || busy.has(name) || busyBefore.has(name))) {
      const tick = await gates.tick(group, gatekeeper.roomOf(group));
      gatekeeper.see(group, tick);
      const results = await Promise.all(tick.released.map(({ id }) => queue.promote(id)));
      // While it is closed nobody claims. What an attempt still holds stays: its lease brings it back.
      const isDone = (result: PromoteResult) =>
        result === "ended" || (result === "promoted" && tick.phase === "closed");
      await gates.forget(
        group.name,
        tick.released.filter((_member, at) => isDone(results[at] ?? "not_yet")),
      );
    }
    busyBefore = busy;
  };
}

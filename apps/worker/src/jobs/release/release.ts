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

/**
 * One look at the gates: brings back from the queue's delay what may go out now. Accounts that were busy at the
 * last look are looked at once more, so that this process learns that they aren't. The first look is at all:
 * under other settings an account may have had another name.
 */
export function makeRelease({ gates, gatekeeper, groups, queue }: ReleaseDeps): () => Promise<void> {
  let busyBefore: ReadonlySet<string> = new Set(groups.map(({ name }) => name));
  return async () => {
    const busy = await gates.busy();
    for (const group of groups.filter(({ name }) => busy.has(name) || busyBefore.has(name))) {
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

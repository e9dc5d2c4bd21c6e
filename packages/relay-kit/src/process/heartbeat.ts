import { describeProcess, Periodic, PeriodicHeartbeat } from "@adrelay/service-kit";
import type { Heartbeat, Store } from "@adrelay/store";
import type { PublishersWatch } from "../publishers/publishers-watch.ts";
import type { RelayBase } from "./relay-base.ts";
import type { RelayAdapters } from "./relay-store.ts";

/** Shows other processes that this one runs, and which publishers' file it has. */
export async function startHeartbeat(
  { role, lifecycle, registry }: RelayBase,
  { store, subscriber }: Pick<RelayAdapters, "store" | "subscriber">,
  publishersWatch: Pick<PublishersWatch, "state">,
): Promise<Heartbeat> {
  const heartbeat = store.heartbeat({
    identity: { role, ...describeProcess() },
    publishersFile: () => publishersWatch.state,
    registry,
    subscriber,
  });
  await lifecycle.start("heartbeat", new PeriodicHeartbeat(heartbeat));
  return heartbeat;
}

const SAVE_KEY_USES_INTERVAL_MS = 1000;

/**
 * Saves when callers' keys were used. Nobody waits for it, and what Redis doesn't take is saved later. While Redis refuses
 * the heartbeat, only that is tried: each refused write may replace the connection, and with it the answer to the heartbeat
 * would be lost. What was noted since the last save is saved at the stop.
 */
export async function saveKeyUses(
  { lifecycle, log }: Pick<RelayBase, "lifecycle" | "log">,
  keyUses: Pick<Store["keyUses"], "save">,
  heartbeat: Pick<Heartbeat, "writes">,
): Promise<void> {
  const onError = (err: unknown) => log.debug({ event: "key_uses_not_saved", err });
  const save = async () => {
    if (heartbeat.writes.kind === "accepted") {
      await keyUses.save();
    }
  };
  const saves = new Periodic(save, SAVE_KEY_USES_INTERVAL_MS, onError);
  await lifecycle.start("uses of keys", {
    start: () => saves.start(),
    stop: async () => {
      await saves.stop();
      await save().catch(onError);
    },
  });
}

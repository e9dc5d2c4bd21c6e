import type { ReplayView } from "@adrelay/contract";
import type { BulkReplay } from "@adrelay/ledger";
import { isoTime } from "../iso-time.ts";

/** A bulk replay as operators see it. Null for what isn't there. */
export function replayView({ id, filter, ...replay }: BulkReplay): ReplayView {
  return {
    replay_id: id,
    state: replay.state,
    filter: {
      publisher: filter.publisher ?? null,
      reason: filter.reason ?? null,
      since: isoTime(filter.sinceMs),
      until: isoTime(filter.untilMs),
    },
    rate_per_second: replay.ratePerSecond,
    matched: replay.matched,
    replayed: replay.replayed,
    created_at: isoTime(replay.createdAtMs),
    created_by: replay.createdBy,
    updated_at: isoTime(replay.updatedAtMs),
    ended_at: isoTime(replay.endedAtMs),
  };
}

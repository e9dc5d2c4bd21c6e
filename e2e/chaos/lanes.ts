/** Traffic of two publishers: each lane obtains an ad and sees to it, again and again. */
import { makeRandom, pause, type RelayCaller, relayCaller } from "@adrelay/testkit";
import type { Account } from "./fault.ts";
import { LaneRecords } from "./lane-record.ts";
import { type Lane, obtainAd, treatAd } from "./publisher.ts";
import { CALLER_KEYS, type World } from "./world.ts";

export interface Lanes {
  readonly records: LaneRecords;
  /** Takes up no more ads; resolves once each has got its clear answer, or after `timeoutMs`: then false. */
  finish(timeoutMs: number): Promise<boolean>;
}

export interface LaneOptions {
  readonly seed: number;
  readonly lanes: number;
  /** Between two ads of a lane. */
  readonly pauseMs: number;
}

export function startLanes(world: World, { seed, lanes, pauseMs }: LaneOptions): Lanes {
  const records = new LaneRecords();
  const ending = new AbortController();
  const dropping = new AbortController();
  const running = Array.from({ length: lanes }, async (_, at) => {
    const lane: Lane = {
      random: makeRandom(`lane ${seed} ${at}`),
      callers: { acme: callersOf(world, "acme"), globe: callersOf(world, "globe") },
      records,
      isOver: () => dropping.signal.aborted,
      count: 0,
    };
    const open = new Set<Promise<void>>();
    while (!ending.signal.aborted) {
      const ad = await obtainAd(lane);
      if (ad !== undefined) {
        const work = treatAd(lane, ad).finally(() => open.delete(work));
        open.add(work);
      }
      await pause(pauseMs * lane.random.between(0.5, 1.5));
    }
    await Promise.all(open);
  });
  return {
    records,
    finish: async (timeoutMs) => {
      ending.abort();
      const done = Promise.all(running).then(() => true);
      const inTime = await Promise.race([done, pause(timeoutMs).then(() => false)]);
      dropping.abort();
      return inTime;
    },
  };
}

function callersOf({ gatewayUrls }: World, account: Account): readonly RelayCaller[] {
  return gatewayUrls.map((url) => relayCaller(url, CALLER_KEYS[account]));
}

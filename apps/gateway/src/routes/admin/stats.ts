import type { DataLossView, ProcessView, ProviderView, StateCounts, Stats } from "@adrelay/contract";
import type { LabelledCount, Ledger } from "@adrelay/ledger";
import type { DeliveryQueue } from "@adrelay/queue";
import { OVERDUE } from "@adrelay/service-kit";
import type { RequestHandler } from "express";
import { isoTime } from "../iso-time.ts";
import { askLedger, sendUnavailable } from "../ledger-answers.ts";

export interface StatsDeps {
  readonly ledger: Ledger;
  readonly queue: DeliveryQueue;
  readonly version: string;
  /** The relay's own parts, as the API shows them. */
  providers(): Promise<readonly ProviderView[]>;
  processes(): Promise<readonly ProcessView[]>;
  dataLoss(): Promise<DataLossView | null>;
}

/** GET /admin/v1/stats: how all of it stands, at one glance. */
export function makeStatsHandler(deps: StatsDeps): RequestHandler {
  return async (_request, response) => {
    const stats = await askLedger(gatherStats(deps));
    if (stats === OVERDUE) {
      sendUnavailable(response);
    } else {
      response.json(stats);
    }
  };
}

async function gatherStats({ ledger, queue, version, ...others }: StatsDeps): Promise<Stats> {
  const [snapshot, depths, providers, processes, dataLoss] = await Promise.all([
    ledger.snapshot(),
    queue.counts(),
    others.providers(),
    others.processes(),
    others.dataLoss(),
  ]);
  const states = sumByState(snapshot.states);
  const secondsIf = (some: number, ageMs: number) => (some > 0 ? ageMs / 1000 : null);
  return {
    at: isoTime(snapshot.nowMs),
    version,
    states,
    publishers: byPublisher(snapshot.states),
    overdue: snapshot.overdue,
    oldest_queued_age_seconds: secondsIf(states.queued, snapshot.oldestQueuedAgeMs),
    oldest_dead_letter_age_seconds: secondsIf(states.dead, snapshot.oldestDeadAgeMs),
    queue: depths,
    dead_letters: snapshot.deadLetters.map(({ publisher, label: reason, value: count }) => {
      return { publisher, reason, count };
    }),
    providers: [...providers],
    processes: [...processes],
    data_loss: dataLoss,
  };
}

const NO_COUNTS = {
  awaiting: 0,
  queued: 0,
  delivered: 0,
  refused: 0,
  dead: 0,
  missed: 0,
  discarded: 0,
  expired: 0,
} as const satisfies StateCounts;

function sumByState(counts: readonly LabelledCount[]): StateCounts {
  const sum: StateCounts = { ...NO_COUNTS };
  for (const { label, value } of counts) {
    if (isCounted(label)) {
      sum[label] += value;
    }
  }
  return sum;
}

function byPublisher(counts: readonly LabelledCount[]): Record<string, StateCounts> {
  const groups = Map.groupBy(counts, ({ publisher }) => publisher);
  return Object.fromEntries([...groups].map(([publisher, own]) => [publisher, sumByState(own)]));
}

function isCounted(label: string): label is keyof StateCounts {
  return Object.hasOwn(NO_COUNTS, label);
}

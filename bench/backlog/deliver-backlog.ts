import type { BenchChild } from "../processes/bench-child.ts";
import { type CpuTimes, cpuBetween, cpuTimesOf, type Pids } from "../processes/process-usage.ts";
import { type Reached, reachedSchema } from "../processes/provider-messages.ts";

/** The timed part of a delivery: between two counts of the provider. */
export interface DeliveryRound {
  readonly count: number;
  readonly ratePerSecond: number;
  readonly cpuMs: CpuTimes;
}

export interface Delivering {
  readonly provider: BenchChild;
  /** The warm-up ends with the first count of the provider, the watched part with the second. */
  readonly from: number;
  readonly to: number;
  readonly startWorker: () => Promise<BenchChild>;
}

/** What there is to watch from the first count on. */
export interface Underway {
  readonly worker: BenchChild;
  readonly first: Reached;
  readonly last: Promise<Reached>;
}

/** Runs a worker until the provider has seen enough, then stops it. */
export async function duringDeliveries<T>(
  { provider, from, to, startWorker }: Delivering,
  watch: (underway: Underway) => Promise<T>,
): Promise<T> {
  provider.tell({ kind: "watch", milestones: [from, to] });
  const hear = (count: number) => provider.hear(reachedSchema.refine((reached) => reached.count === count));
  const reachedFirst = hear(from);
  const last = hear(to);
  await using worker = await startWorker();
  const first = await reachedFirst;
  const watched = await watch({ worker, first, last });
  await last;
  return watched;
}

/** Times deliveries by what reaches the provider. */
export function timeDeliveries(delivering: Delivering, pids: Pids): Promise<DeliveryRound> {
  const { provider, from, to } = delivering;
  return duringDeliveries(delivering, async ({ worker, first, last }) => {
    const watched = { ...pids, worker: worker.pid, provider: provider.pid };
    const before = cpuTimesOf(watched);
    const { atMs } = await last;
    const cpuMs = cpuBetween(before, cpuTimesOf(watched));
    const count = to - from;
    return { count, ratePerSecond: (count / (atMs - first.atMs)) * 1000, cpuMs };
  });
}

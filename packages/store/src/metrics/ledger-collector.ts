import type { DeliveryQueue } from "../bullmq/queue.ts";
import { type LedgerMetric, LedgerMetrics, type LedgerMetricsOptions } from "./ledger-metrics.ts";
import { loadPublisherCounts, loadSharedCounts, type SnapshotParts } from "./snapshot.ts";

interface CollectorParts extends SnapshotParts {
  readonly queue: Pick<DeliveryQueue, "depths">;
}

/** Collects the ledger's metrics at each scrape. */
export class LedgerCollector {
  readonly #parts: CollectorParts;
  readonly #metrics: LedgerMetrics;
  #last: Promise<unknown> = Promise.resolve();

  constructor(parts: CollectorParts, options: LedgerMetricsOptions) {
    this.#parts = parts;
    this.#metrics = new LedgerMetrics(options);
  }

  /**
   * The metrics as of now; none while Redis doesn't answer. Scrapes at the same time are served one after another, so that
   * counts are never older than those of the scrape before.
   */
  collect(): Promise<LedgerMetric[]> {
    const collected = this.#last.then(() => this.#load());
    this.#last = collected;
    return collected;
  }

  async #load(): Promise<LedgerMetric[]> {
    try {
      const [counts, shared, depths] = await Promise.all([
        loadPublisherCounts(this.#parts, this.#metrics.last),
        loadSharedCounts(this.#parts),
        this.#parts.queue.depths(),
      ]);
      return this.#metrics.show({ counts, shared, depths });
    } catch {
      return [];
    }
  }
}

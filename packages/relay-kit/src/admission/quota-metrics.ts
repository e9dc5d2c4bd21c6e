import { Counter, type Registry } from "prom-client";
import type { PublisherSeries } from "../publishers/publisher-series.ts";
import { QUOTA_NAMES, type QuotaName } from "./quota-names.ts";

/** How many requests of a publisher were refused because of a quota. */
export interface QuotaRefusals {
  readonly publisher: string;
  readonly quota: string;
  readonly count: number;
}

/** What a process counts of refusals because of quotas. */
export interface QuotaMetrics {
  /** Counts a refusal because of a quota. */
  countOverQuota(publisher: string, quota: QuotaName): void;
  /** The refusals that were counted since the start. */
  loadRefusals(): Promise<QuotaRefusals[]>;
}

/** Registers the counter of these refusals. */
export function createQuotaMetrics(registry: Registry, series: PublisherSeries): QuotaMetrics {
  const overQuota = new Counter({
    name: "adrelay_quota_refused_total",
    help: "Requests that this process refused because of a quota of the publisher, or because Redis is nearly full (redis_memory).",
    labelNames: ["publisher", "quota"],
    registers: [registry],
  });
  series.addCounter(
    overQuota,
    QUOTA_NAMES.map((quota) => ({ quota })),
  );
  return {
    countOverQuota: (publisher, quota) => overQuota.inc({ publisher: series.labelOf(publisher), quota }),
    loadRefusals: async () => {
      const { values } = await overQuota.get();
      return values.map(({ labels: { publisher = "", quota = "" }, value: count }) => {
        return { publisher: String(publisher), quota: String(quota), count };
      });
    },
  };
}

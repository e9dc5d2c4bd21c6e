/** This process' metrics of each publisher: its calls, and the delays of its acknowledgments. */
import type { PublisherSeries } from "@adrelay/relay-kit";
import { Counter, Histogram, type Registry } from "prom-client";

/** Classes of statuses. 499: the caller hung up. */
const CALL_STATUSES = ["2xx", "4xx", "499", "5xx"] as const;

/** From a quick answer up to one that comes a day later. */
const DELAY_BUCKETS_SECONDS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400];

export interface PublisherMetrics {
  countCall(publisher: string, status: number): void;
  observeDelay(publisher: string, delayMs: number): void;
}

export function createPublisherMetrics(registry: Registry, series: PublisherSeries): PublisherMetrics {
  const calls = new Counter({
    name: "adrelay_publisher_calls_total",
    help: "Calls with a publisher's key that this process answered, by class of status: 2xx, 4xx, 499 (the caller hung up), 5xx.",
    labelNames: ["publisher", "status"],
    registers: [registry],
  });
  series.addCounter(
    calls,
    CALL_STATUSES.map((status) => ({ status })),
  );
  const delay = new Histogram({
    name: "adrelay_acknowledgment_delay_seconds",
    help: "Time from an injection to its acknowledgment, for acknowledgments that this process accepted.",
    labelNames: ["publisher"],
    buckets: DELAY_BUCKETS_SECONDS,
    registers: [registry],
  });
  series.add({
    zero: (publisher) => delay.zero({ publisher }),
    remove: (publisher) => delay.remove({ publisher }),
  });
  return {
    countCall: (publisher, status) => {
      const statusClass = status === 499 ? "499" : `${Math.floor(status / 100)}xx`;
      calls.inc({ publisher: series.labelOf(publisher), status: statusClass });
    },
    observeDelay: (publisher, delayMs) =>
      delay.observe({ publisher: series.labelOf(publisher) }, delayMs / 1000),
  };
}

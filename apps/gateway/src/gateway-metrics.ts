import type { PublisherDirectory } from "@adrelay/provider";
import {
  createInjectionMetrics,
  createQuotaMetrics,
  type InjectionMetrics,
  PublisherSeries,
  type QuotaMetrics,
} from "@adrelay/relay-kit";
import { createHistogramWithExemplars } from "@adrelay/service-kit";
import type { Histogram, Registry } from "prom-client";
import type { Acceptance } from "./acknowledge/acknowledge.ts";
import { createPublisherMetrics } from "./publisher-metrics.ts";

/** This process' own metrics. The ledger's metrics are the same on every replica (packages/store/src/metrics). */
export interface GatewayMetrics extends InjectionMetrics, QuotaMetrics {
  /** operation: start_injection, acknowledge, look_up, other. status: the answer's, 499 if the caller hung up. */
  readonly requestDuration: Histogram<"operation" | "status">;
  countCall(publisher: string, status: number): void;
  /** Observes how long after its injection an acknowledgment was accepted, if its injection is known. */
  observeAccepted(acceptance: Acceptance): void;
}

/** Doubling steps from 1 ms up to the longest time limit. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];

export interface GatewayMetricsOptions {
  readonly publishers: Pick<PublisherDirectory, "current" | "accountOf">;
  readonly publishersMax: number;
}

export function createGatewayMetrics(
  registry: Registry,
  { publishers, publishersMax }: GatewayMetricsOptions,
): GatewayMetrics {
  const series = new PublisherSeries({ publishers, publishersMax });
  const ofInjections = createInjectionMetrics(registry, { series, publishers, providersMax: publishersMax });
  const ofQuotas = createQuotaMetrics(registry, series);
  const { countCall, observeDelay } = createPublisherMetrics(registry, series);
  return {
    ...ofInjections,
    ...ofQuotas,
    countCall,
    requestDuration: createHistogramWithExemplars(registry, {
      name: "adrelay_http_request_duration_seconds",
      help: "Time from a request's arrival to the end of its answer. Operations: start_injection, acknowledge, look_up, other.",
      labelNames: ["operation", "status"],
      buckets: BUCKETS_SECONDS,
    }),
    observeAccepted: ({ publisher, recordedAtMs, acceptedAtMs }) => {
      if (recordedAtMs !== undefined) {
        observeDelay(publisher, acceptedAtMs - recordedAtMs);
      }
    },
  };
}

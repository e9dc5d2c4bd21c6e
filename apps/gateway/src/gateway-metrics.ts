import type { PublisherDirectory } from "@adrelay/provider";
import { createHistogramWithExemplars, ProviderDurations } from "@adrelay/service-kit";
import { Counter, type Histogram, type Registry } from "prom-client";
import type { Acceptance } from "./acknowledge/acknowledge.ts";
import { type AnsweredInjection, PublisherMetrics, type QuotaRefusals } from "./publisher-metrics.ts";
import type { QuotaName } from "./quota-answers.ts";

/** This process' own metrics. The ledger's metrics are the same on every replica (packages/store/src/metrics). */
export interface GatewayMetrics {
  /** operation: start_injection, acknowledge, look_up, other. status: the answer's, 499 if the caller hung up. */
  readonly requestDuration: Histogram<"operation" | "status">;
  readonly untracked: Counter;
  countCall(publisher: string, status: number): void;
  countInjection(publisher: string, injection: AnsweredInjection): void;
  /** Observes a call to the provider. outcome: the provider's status class, or why there was no answer. */
  observeProvider(publisher: string, outcome: string, durationMs: number): void;
  /** Counts a refusal because of a quota. */
  countOverQuota(publisher: string, quota: QuotaName): void;
  loadRefusals(): Promise<QuotaRefusals[]>;
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
  const ofPublishers = new PublisherMetrics(registry, {
    listPublishers: () => publishers.current.map(({ id }) => id),
    publishersMax,
  });
  const durations = new ProviderDurations(registry, publishersMax);
  return {
    requestDuration: createHistogramWithExemplars(registry, {
      name: "adrelay_http_request_duration_seconds",
      help: "Time from a request's arrival to the end of its answer. Operations: start_injection, acknowledge, look_up, other.",
      labelNames: ["operation", "status"],
      buckets: BUCKETS_SECONDS,
    }),
    untracked: new Counter({
      name: "adrelay_injections_untracked_total",
      help: "Injections answered without being recorded, because Redis did not confirm the write in time.",
      registers: [registry],
    }),
    countCall: (publisher, status) => ofPublishers.countCall(publisher, status),
    countInjection: (publisher, injection) => ofPublishers.countInjection(publisher, injection),
    observeProvider: (publisher, outcome, durationMs) => {
      const provider = publishers.accountOf(publisher)?.name ?? "";
      durations.observe({ operation: "start_injection", provider, outcome }, durationMs);
    },
    countOverQuota: (publisher, quota) => ofPublishers.countOverQuota(publisher, quota),
    loadRefusals: () => ofPublishers.loadRefusals(),
    observeAccepted: ({ publisher, recordedAtMs, acceptedAtMs }) => {
      if (recordedAtMs !== undefined) {
        ofPublishers.observeDelay(publisher, acceptedAtMs - recordedAtMs);
      }
    },
  };
}

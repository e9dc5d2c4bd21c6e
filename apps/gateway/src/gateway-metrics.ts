import type { PublisherId } from "@adrelay/contract";
import { createHistogramWithExemplars } from "@adrelay/service-kit";
import { Counter, Histogram, type Registry } from "prom-client";
import type { Acceptance } from "./acknowledge/acknowledge.ts";

/** This process' own metrics. The ledger's metrics are the same on every replica (packages/store/src/metrics). */
export interface GatewayMetrics {
  /** operation: start_injection, acknowledge, look_up, other. status: the answer's, 499 if the caller hung up. */
  readonly requestDuration: Histogram<"operation" | "status">;
  /** operation: start_injection. outcome: the provider's status class, or why there was no answer. */
  readonly providerDuration: Histogram<"operation" | "outcome">;
  /** outcome: ok, rejected, no_fill, callers_fault, fallback, abandoned. */
  readonly injections: Counter<"publisher" | "outcome">;
  readonly untracked: Counter;
  /** Observes how long after its injection an acknowledgment was accepted, if its injection is known. */
  observeAccepted(acceptance: Acceptance): void;
}

/** Doubling steps from 1 ms up to the longest time limit. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];

/** From a quick answer up to one that comes a day later. */
const DELAY_BUCKETS_SECONDS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400];

/** Every value of the label `outcome` of adrelay_injections_total. */
const INJECTION_LABELS = ["ok", "rejected", "no_fill", "callers_fault", "fallback", "abandoned"] as const;

export function createGatewayMetrics(registry: Registry, publishers: readonly PublisherId[]): GatewayMetrics {
  const registers = [registry];
  const delay = new Histogram({
    name: "adrelay_acknowledgment_delay_seconds",
    help: "Time from an injection to its acknowledgment, for acknowledgments that this process accepted.",
    labelNames: ["publisher"],
    buckets: DELAY_BUCKETS_SECONDS,
    registers,
  });
  const injections = new Counter({
    name: "adrelay_injections_total",
    help: "Injections answered by this process, by outcome: ok, rejected, no_fill, callers_fault, fallback, abandoned.",
    labelNames: ["publisher", "outcome"],
    registers,
  });
  for (const publisher of publishers) {
    delay.zero({ publisher });
    for (const outcome of INJECTION_LABELS) {
      injections.inc({ publisher, outcome }, 0);
    }
  }
  return {
    observeAccepted: ({ publisher, recordedAtMs, acceptedAtMs }) => {
      if (recordedAtMs !== undefined) {
        delay.observe({ publisher }, (acceptedAtMs - recordedAtMs) / 1000);
      }
    },
    requestDuration: createHistogramWithExemplars(registry, {
      name: "adrelay_http_request_duration_seconds",
      help: "Time from a request's arrival to the end of its answer. Operations: start_injection, acknowledge, look_up, other.",
      labelNames: ["operation", "status"],
      buckets: BUCKETS_SECONDS,
    }),
    providerDuration: new Histogram({
      name: "adrelay_provider_request_duration_seconds",
      help: "Time of a call to the ad service, body included, by status class (2xx) or why there was no answer.",
      labelNames: ["operation", "outcome"],
      buckets: BUCKETS_SECONDS,
      registers,
    }),
    injections,
    untracked: new Counter({
      name: "adrelay_injections_untracked_total",
      help: "Injections answered without being recorded, because Redis did not confirm the write in time.",
      registers,
    }),
  };
}

import { Counter, Histogram, type Registry } from "prom-client";

/** This process' own metrics; those of the ledger are the same on every replica. */
export interface GatewayMetrics {
  /** operation: start_injection, acknowledge, look_up, other. status: the answer's, 499 if the caller hung up. */
  readonly requestDuration: Histogram<"operation" | "status">;
  /** operation: start_injection. outcome: the provider's status class, or why there was no answer. */
  readonly providerDuration: Histogram<"operation" | "outcome">;
  /** outcome: ok, rejected, no_fill, callers_fault, fallback, abandoned. */
  readonly injections: Counter<"publisher" | "outcome">;
  readonly untracked: Counter;
}

/** Doubling steps from 1 ms up to the longest time limit. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];

export function createGatewayMetrics(registry: Registry): GatewayMetrics {
  const registers = [registry];
  return {
    requestDuration: new Histogram({
      name: "adrelay_http_request_duration_seconds",
      help: "Time from a request's arrival to the end of its answer.",
      labelNames: ["operation", "status"],
      buckets: BUCKETS_SECONDS,
      registers,
    }),
    providerDuration: new Histogram({
      name: "adrelay_provider_request_duration_seconds",
      help: "Time of a call to the ad service, body included.",
      labelNames: ["operation", "outcome"],
      buckets: BUCKETS_SECONDS,
      registers,
    }),
    injections: new Counter({
      name: "adrelay_injections_total",
      help: "Injections answered by this process.",
      labelNames: ["publisher", "outcome"],
      registers,
    }),
    untracked: new Counter({
      name: "adrelay_injections_untracked_total",
      help: "Injections answered without being on the books, because Redis did not take them in time.",
      registers,
    }),
  };
}

import { createHistogramWithExemplars } from "@adrelay/service-kit";
import { Counter, Histogram, type Registry } from "prom-client";

/** This process' own metrics; those of the ledger are the same on every replica. */
export interface WorkerMetrics {
  /** outcome: deliver, refuse, retry, die. */
  readonly attempts: Counter<"outcome">;
  /** operation: acknowledge. outcome: the provider's status class, or why there was no answer. */
  readonly providerDuration: Histogram<"operation" | "outcome">;
  /** From acceptance, or replay, to delivery. */
  readonly lag: Histogram;
}

export function createWorkerMetrics(registry: Registry): WorkerMetrics {
  const registers = [registry];
  const attempts = new Counter({
    name: "adrelay_delivery_attempts_total",
    help: "Attempts at delivery by this process, by what came of them: deliver, refuse, retry, die.",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of ["deliver", "refuse", "retry", "die"]) {
    attempts.inc({ outcome }, 0);
  }
  return {
    attempts,
    providerDuration: new Histogram({
      name: "adrelay_provider_request_duration_seconds",
      help: "Time of a call to the ad service, body included, by status class (2xx) or why there was no answer.",
      labelNames: ["operation", "outcome"],
      buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30],
      registers,
    }),
    lag: createHistogramWithExemplars(registry, {
      name: "adrelay_acknowledgment_delivery_lag_seconds",
      help: "Time from an acknowledgment's acceptance, or replay, to its delivery.",
      buckets: [0.01, 0.05, 0.1, 0.5, 1, 5, 30, 120, 600, 3600, 14_400, 86_400, 259_200],
    }),
  };
}

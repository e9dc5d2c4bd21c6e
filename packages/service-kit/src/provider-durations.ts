import { OwnSeries } from "@adrelay/core";
import { Histogram, type Registry } from "prom-client";

/** Doubling steps from 1 ms up to the longest time limit. */
const BUCKETS_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2, 5, 10, 30];

interface ProviderCall {
  readonly operation: "start_injection" | "acknowledge";
  /** The name of the provider account. */
  readonly provider: string;
  /** The provider's status class, or why there was no answer. */
  readonly outcome: string;
}

/**
 * How long calls to providers take. The accounts that were called within the last day have their own series, up to a limit;
 * all others share `other`.
 */
export class ProviderDurations {
  readonly #own: OwnSeries;
  readonly #histogram: Histogram<keyof ProviderCall>;
  /** The calls of each account whose series exist. */
  readonly #seen = new Map<string, Map<string, ProviderCall>>();

  constructor(registry: Registry, providersMax: number) {
    this.#own = new OwnSeries(providersMax);
    this.#histogram = new Histogram({
      name: "adrelay_provider_request_duration_seconds",
      help: "Time of a call to the ad service, body included, by provider account and status class (2xx) or why there was no answer.",
      labelNames: ["operation", "provider", "outcome"],
      buckets: BUCKETS_SECONDS,
      registers: [registry],
      collect: () => this.#expire(),
    });
  }

  observe(call: ProviderCall, durationMs: number): void {
    const labels = { ...call, provider: this.#own.use(call.provider, performance.now()) };
    const seen = this.#seen.get(labels.provider) ?? new Map<string, ProviderCall>();
    this.#seen.set(labels.provider, seen.set(call.outcome, labels));
    this.#histogram.observe(labels, durationMs / 1000);
  }

  #expire(): void {
    for (const provider of this.#own.expire(performance.now())) {
      for (const labels of this.#seen.get(provider)?.values() ?? []) {
        this.#histogram.remove(labels);
      }
      this.#seen.delete(provider);
    }
  }
}

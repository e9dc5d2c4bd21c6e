import { FALLBACK_REASONS, type FallbackReason } from "@adrelay/core";
import type { PublisherDirectory } from "@adrelay/provider";
import { ProviderDurations } from "@adrelay/service-kit";
import { Counter, type Registry } from "prom-client";
import type { PublisherSeries } from "../publishers/publisher-series.ts";

/** Every outcome of adrelay_injections_total but the fallback, which has a reason, too. */
const INJECTION_OUTCOMES = ["ok", "rejected", "no_fill", "callers_fault", "abandoned"] as const;
export type AnsweredInjection =
  | { readonly outcome: (typeof INJECTION_OUTCOMES)[number] }
  | { readonly outcome: "fallback"; readonly reason: FallbackReason };

/** All values of the labels of adrelay_injections_total but the publisher. */
const INJECTION_LABELS: readonly AnsweredInjection[] = [
  ...INJECTION_OUTCOMES.map((outcome) => ({ outcome })),
  ...FALLBACK_REASONS.map((reason) => ({ outcome: "fallback", reason }) as const),
];

/** What a process counts of its injections. */
export interface InjectionMetrics {
  countInjection(publisher: string, injection: AnsweredInjection): void;
  /** Observes a call to the provider. outcome: the provider's status class, or why there was no answer. */
  observeProvider(publisher: string, outcome: string, durationMs: number): void;
  /** Counts an injection whose record Redis didn't confirm in time. */
  countUntracked(): void;
}

export interface InjectionMetricsOptions {
  readonly series: PublisherSeries;
  readonly publishers: Pick<PublisherDirectory, "accountOf">;
  /** How many provider accounts have their own series. */
  readonly providersMax: number;
}

/**
 * Registers the metrics of injections. To be called before other metrics of publishers are registered, because it refreshes
 * their series at each scrape.
 */
export function createInjectionMetrics(
  registry: Registry,
  { series, publishers, providersMax }: InjectionMetricsOptions,
): InjectionMetrics {
  const injections = new Counter({
    name: "adrelay_injections_total",
    help: "Injections answered by this process, by outcome: ok, rejected, no_fill, callers_fault, fallback (with its reason, as in X-Adrelay-Fallback), abandoned.",
    labelNames: ["publisher", "outcome", "reason"],
    registers: [registry],
    collect: () => series.refresh(),
  });
  series.addCounter(injections, INJECTION_LABELS);
  const untracked = new Counter({
    name: "adrelay_injections_untracked_total",
    help: "Injections answered without being recorded, because Redis did not confirm the write in time.",
    registers: [registry],
  });
  const durations = new ProviderDurations(registry, providersMax);
  return {
    countInjection: (publisher, injection) =>
      injections.inc({ publisher: series.labelOf(publisher), ...injection }),
    observeProvider: (publisher, outcome, durationMs) => {
      const provider = publishers.accountOf(publisher)?.name ?? "";
      durations.observe({ operation: "start_injection", provider, outcome }, durationMs);
    },
    countUntracked: () => untracked.inc(),
  };
}

/**
 * The circuit breakers as this process saw them last. All accounts have their own series if they are few enough. Otherwise
 * those have them that were busy within the last day, up to the limit; all others share `other`.
 */
import { CIRCUIT_REASONS, OTHER_LABEL, OwnSeries } from "@adrelay/core";
import type { CircuitState } from "@adrelay/store";
import { Gauge, type Registry } from "prom-client";

export interface CircuitMetricsOptions {
  readonly providersMax: number;
  readonly slotsMax: number;
}

type ShownState = Pick<CircuitState, "phase" | "reason" | "parked"> & { readonly slots: number };

export class CircuitMetrics {
  readonly #options: CircuitMetricsOptions;
  readonly #own: OwnSeries;
  /** The busy accounts that share `other`. */
  readonly #hidden = new Map<string, ShownState>();
  readonly #open: Gauge<"provider" | "reason">;
  readonly #parked: Gauge<"provider">;
  readonly #slots: Gauge<"provider">;
  /** The configured accounts, each by the id of one of its publishers. */
  #providers: readonly string[] = [];

  constructor(registry: Registry, options: CircuitMetricsOptions) {
    this.#options = options;
    this.#own = new OwnSeries(options.providersMax);
    const registers = [registry];
    this.#open = new Gauge({
      name: "adrelay_provider_circuit_open",
      help: "1 while only probes go to the provider, by reason: outage, auth (it refuses our key), throttled.",
      labelNames: ["provider", "reason"],
      registers,
      collect: () => this.#refresh(),
    });
    this.#parked = new Gauge({
      name: "adrelay_provider_waiting_acknowledgments",
      help: "Parked acknowledgments: queued, and waiting until their circuit breaker lets them go.",
      labelNames: ["provider"],
      registers,
    });
    this.#slots = new Gauge({
      name: "adrelay_delivery_concurrency_limit",
      help: "How many attempts this process may make at the same time at the provider: fewer while it fails under load.",
      labelNames: ["provider"],
      registers,
    });
  }

  /** Takes these accounts in place of the present ones. The series of the others end. */
  useProviders(providers: readonly string[]): void {
    const before = new Set(this.#providers);
    for (const provider of this.#providers.filter((one) => !providers.includes(one))) {
      this.#hidden.delete(provider);
      this.#own.drop(provider);
      this.#remove(provider);
    }
    this.#providers = providers;
    for (const provider of this.#areFew ? providers.filter((one) => !before.has(one)) : []) {
      this.show(provider, {
        phase: "closed",
        reason: undefined,
        parked: 0,
        slots: this.#options.slotsMax,
      });
    }
  }

  show(provider: string, state: ShownState): void {
    const isCalm = state.phase === "closed" && state.parked === 0 && state.slots === this.#options.slotsMax;
    if (this.#areFew || !isCalm) {
      this.#own.use(provider, performance.now());
    }
    if (this.#own.has(provider)) {
      this.#hidden.delete(provider);
      this.#set(provider, [state]);
    } else if (isCalm) {
      this.#hidden.delete(provider);
    } else {
      this.#hidden.set(provider, state);
    }
  }

  get #areFew(): boolean {
    return this.#providers.length <= this.#options.providersMax;
  }

  #remove(provider: string): void {
    this.#parked.remove({ provider });
    this.#slots.remove({ provider });
    for (const reason of CIRCUIT_REASONS) {
      this.#open.remove({ provider, reason });
    }
  }

  #set(provider: string, states: readonly ShownState[]): void {
    for (const reason of CIRCUIT_REASONS) {
      const isOpen = states.some((state) => state.phase === "open" && state.reason === reason);
      this.#open.set({ provider, reason }, isOpen ? 1 : 0);
    }
    const parked = states.reduce((sum, state) => sum + state.parked, 0);
    this.#parked.set({ provider }, parked);
    const slots = states.reduce((least, state) => Math.min(least, state.slots), this.#options.slotsMax);
    this.#slots.set({ provider }, slots);
  }

  /** Runs at each scrape. */
  #refresh(): void {
    if (this.#areFew) {
      return;
    }
    for (const provider of this.#own.expire(performance.now())) {
      this.#remove(provider);
    }
    this.#set(OTHER_LABEL, [...this.#hidden.values()]);
  }
}

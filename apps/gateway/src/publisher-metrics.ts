/**
 * This process' metrics of each publisher. At most METRICS_PUBLISHERS_MAX publishers have their own series: all, if they are
 * few enough, otherwise those that called within the last day. All others share `other`.
 */
import { FALLBACK_REASONS, type FallbackReason, OTHER_LABEL, OwnSeries } from "@adrelay/core";
import { Counter, Histogram, type Registry } from "prom-client";
import { QUOTA_NAMES, type QuotaName } from "./quota-answers.ts";

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

/** Classes of statuses. 499: the caller hung up. */
const CALL_STATUSES = ["2xx", "4xx", "499", "5xx"] as const;

/** From a quick answer up to one that comes a day later. */
const DELAY_BUCKETS_SECONDS = [0.5, 1, 2, 5, 10, 30, 60, 120, 300, 600, 900, 1800, 3600, 21_600, 86_400];

/** How many requests of a publisher were refused because of a quota. */
export interface QuotaRefusals {
  readonly publisher: string;
  readonly quota: string;
  readonly count: number;
}

export interface PublisherMetricsOptions {
  /** The configured ones. */
  listPublishers(): readonly string[];
  readonly publishersMax: number;
}

export class PublisherMetrics {
  readonly #options: PublisherMetricsOptions;
  readonly #own: OwnSeries;
  readonly #calls: Counter<"publisher" | "status">;
  readonly #injections: Counter<"publisher" | "outcome" | "reason">;
  readonly #overQuota: Counter<"publisher" | "quota">;
  readonly #delay: Histogram<"publisher">;
  /** Whether publishers have shared series. */
  #hasOther = false;

  constructor(registry: Registry, options: PublisherMetricsOptions) {
    this.#options = options;
    this.#own = new OwnSeries(options.publishersMax);
    const expire = () => this.#expire();
    this.#calls = new Counter({
      name: "adrelay_publisher_calls_total",
      help: "Calls with a publisher's key that this process answered, by class of status: 2xx, 4xx, 499 (the caller hung up), 5xx.",
      labelNames: ["publisher", "status"],
      registers: [registry],
      // The first metric of a scrape that has publishers.
      collect: expire,
    });
    this.#injections = new Counter({
      name: "adrelay_injections_total",
      help: "Injections answered by this process, by outcome: ok, rejected, no_fill, callers_fault, fallback (with its reason, as in X-Adrelay-Fallback), abandoned.",
      labelNames: ["publisher", "outcome", "reason"],
      registers: [registry],
    });
    this.#overQuota = new Counter({
      name: "adrelay_quota_refused_total",
      help: "Requests that this process refused because of a quota of the publisher, or because Redis is nearly full (redis_memory).",
      labelNames: ["publisher", "quota"],
      registers: [registry],
    });
    this.#delay = new Histogram({
      name: "adrelay_acknowledgment_delay_seconds",
      help: "Time from an injection to its acknowledgment, for acknowledgments that this process accepted.",
      labelNames: ["publisher"],
      buckets: DELAY_BUCKETS_SECONDS,
      registers: [registry],
    });
    this.#useConfigured();
  }

  countCall(publisher: string, status: number): void {
    const statusClass = status === 499 ? "499" : `${Math.floor(status / 100)}xx`;
    this.#calls.inc({ publisher: this.#labelOf(publisher), status: statusClass });
  }

  countInjection(publisher: string, injection: AnsweredInjection): void {
    this.#injections.inc({ publisher: this.#labelOf(publisher), ...injection });
  }

  countOverQuota(publisher: string, quota: QuotaName): void {
    this.#overQuota.inc({ publisher: this.#labelOf(publisher), quota });
  }

  /** The refusals that were counted since the start. */
  async loadRefusals(): Promise<QuotaRefusals[]> {
    const { values } = await this.#overQuota.get();
    return values.map(({ labels: { publisher = "", quota = "" }, value: count }) => {
      return { publisher: String(publisher), quota: String(quota), count };
    });
  }

  observeDelay(publisher: string, delayMs: number): void {
    this.#delay.observe({ publisher: this.#labelOf(publisher) }, delayMs / 1000);
  }

  #labelOf(publisher: string): string {
    const isNew = !this.#own.has(publisher);
    const label = this.#own.use(publisher, performance.now());
    if (isNew && label === publisher) {
      this.#zero(label);
    }
    return label;
  }

  /** If a series began above zero, Prometheus would miss that increase. */
  #zero(publisher: string): void {
    this.#delay.zero({ publisher });
    for (const status of CALL_STATUSES) {
      this.#calls.inc({ publisher, status }, 0);
    }
    for (const labels of INJECTION_LABELS) {
      this.#injections.inc({ publisher, ...labels }, 0);
    }
    for (const quota of QUOTA_NAMES) {
      this.#overQuota.inc({ publisher, quota }, 0);
    }
  }

  #useConfigured(): void {
    const publishers = this.#options.listPublishers();
    if (publishers.length > this.#options.publishersMax) {
      if (!this.#hasOther) {
        this.#hasOther = true;
        this.#zero(OTHER_LABEL);
      }
      return;
    }
    for (const publisher of publishers) {
      this.#labelOf(publisher);
    }
  }

  #expire(): void {
    this.#useConfigured();
    for (const publisher of this.#own.expire(performance.now())) {
      this.#delay.remove({ publisher });
      for (const status of CALL_STATUSES) {
        this.#calls.remove({ publisher, status });
      }
      for (const labels of INJECTION_LABELS) {
        this.#injections.remove({ publisher, ...labels });
      }
      for (const quota of QUOTA_NAMES) {
        this.#overQuota.remove({ publisher, quota });
      }
    }
  }
}

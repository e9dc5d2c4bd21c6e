import { ATTRIBUTE_NAMES, type AttributeName, INJECTION_OUTCOMES, VERDICTS } from "@adrelay/contract";
import { createRegistry } from "@adrelay/service-kit";
import { AD_LINKS } from "@adrelay/verdict";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { ResponseStore } from "./store/response-store.ts";

/** Values of the label `operation`. Requests to any other path are `other`. */
export type OperationLabel = "start" | "acknowledge" | "look_up" | "report" | "other";

/** Why an offer can't be sold: its budget, the session's cap or the day's pacing is used up. */
const OBSTACLES = ["no_budget", "capped", "paced"] as const;

/**
 * The metrics of the ad server. All but the last two come from counts in Redis, so they are exact and survive a
 * restart.
 *
 * - `adserver_injections_total{outcome}`: ok, rejected, no_fill.
 * - `adserver_acknowledgments_total{status}`: ok, no_ad_used. Only recorded ones count, so each response counts once.
 * - `adserver_disclosures_total{disclosed}`: true, false. Only acknowledgments with ok count.
 * - `adserver_links_total{link}`: landing, foreign, none. Only acknowledgments with ok count.
 * - `adserver_auctions_total{outcome}`: won or, if no offer could be sold, the obstacle to the best one: no_budget,
 *   capped, paced.
 * - `adserver_offers_passed_over_total{reason}`: the same obstacles, counted for each offer.
 * - `adserver_spend_micros_total`, `adserver_reserved_micros`, `adserver_reservations_expired_total`,
 *   `adserver_acknowledgments_unpaid_total`.
 * - `adserver_unreadable_attributes_total{attribute}`: of this process.
 * - `adserver_http_request_duration_seconds{operation,status}`: of this process.
 */
export class AdServerMetrics {
  readonly #registry = createRegistry();
  readonly #store: Pick<ResponseStore, "loadCounts">;
  readonly #injections = new Counter({
    name: "adserver_injections_total",
    help: "Injections answered, by outcome.",
    labelNames: ["outcome"],
    registers: [this.#registry],
  });
  readonly #acknowledgments = new Counter({
    name: "adserver_acknowledgments_total",
    help: "Acknowledgments recorded, by status.",
    labelNames: ["status"],
    registers: [this.#registry],
  });
  readonly #disclosures = new Counter({
    name: "adserver_disclosures_total",
    help: "Acknowledgments recorded as ok, by whether the answer marks the ad as one.",
    labelNames: ["disclosed"],
    registers: [this.#registry],
  });
  readonly #links = new Counter({
    name: "adserver_links_total",
    help: "Acknowledgments recorded as ok, by where the answer links the ad to: landing, foreign, none.",
    labelNames: ["link"],
    registers: [this.#registry],
  });
  readonly #auctions = new Counter({
    name: "adserver_auctions_total",
    help: "Auctions held: won, or the obstacle to the best offer (no_budget, capped, paced).",
    labelNames: ["outcome"],
    registers: [this.#registry],
  });
  readonly #passedOver = new Counter({
    name: "adserver_offers_passed_over_total",
    help: "Offers that could not be sold, by reason (no_budget, capped, paced).",
    labelNames: ["reason"],
    registers: [this.#registry],
  });
  readonly #reserved = new Gauge({
    name: "adserver_reserved_micros",
    help: "Money reserved for injections that may still be acknowledged.",
    registers: [this.#registry],
  });
  readonly #sums = {
    spend_micros: this.#counterOf("adserver_spend_micros_total", "Money charged for acknowledged ads."),
    expired: this.#counterOf(
      "adserver_reservations_expired_total",
      "Reservations that ended without an acknowledgment.",
    ),
    unpaid: this.#counterOf(
      "adserver_acknowledgments_unpaid_total",
      "Acknowledgments with ok that came after their window, when the budget was used up.",
    ),
  } as const;
  readonly #unreadable = new Counter({
    name: "adserver_unreadable_attributes_total",
    help: "Attributes of end users that were unknown to an injection because their value could not be read.",
    labelNames: ["attribute"],
    registers: [this.#registry],
  });
  readonly #durations = new Histogram({
    name: "adserver_http_request_duration_seconds",
    help: "Time from a request to the end of its answer.",
    labelNames: ["operation", "status"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [this.#registry],
  });

  constructor(store: Pick<ResponseStore, "loadCounts">) {
    this.#store = store;
    for (const attribute of ATTRIBUTE_NAMES) {
      this.#unreadable.inc({ attribute }, 0);
    }
  }

  /** Other parts register their own metrics here. */
  get registry(): Registry {
    return this.#registry;
  }

  /** Records the duration of one finished request. */
  observe(operation: OperationLabel, status: number, durationMs: number): void {
    this.#durations.observe({ operation, status }, durationMs / 1000);
  }

  /** Counts the attributes of one injection that can't be read. */
  countUnreadable(attributes: readonly AttributeName[]): void {
    for (const attribute of attributes) {
      this.#unreadable.inc({ attribute });
    }
  }

  /** All current metrics. While Redis is away its counts are left out, since an old number would be wrong. */
  async collect(): Promise<Registry> {
    const counts = await this.#store.loadCounts();
    const counters = [
      this.#injections,
      this.#acknowledgments,
      this.#disclosures,
      this.#links,
      this.#auctions,
      this.#passedOver,
    ];
    for (const metric of [...counters, this.#reserved, ...Object.values(this.#sums)]) {
      metric.reset();
    }
    if (counts.kind === "ok") {
      this.#fill((name) => counts.value.get(name) ?? 0);
    } else {
      // After a reset, a metric without labels would be reported as 0, which would be wrong.
      for (const metric of [this.#reserved, ...Object.values(this.#sums)]) {
        metric.remove();
      }
    }
    return this.#registry;
  }

  #fill(count: (name: string) => number): void {
    for (const outcome of Object.values(INJECTION_OUTCOMES)) {
      this.#injections.inc({ outcome }, count(`injections:${outcome}`));
    }
    for (const status of VERDICTS) {
      this.#acknowledgments.inc({ status }, count(`acknowledgments:${status}`));
    }
    for (const disclosed of ["true", "false"]) {
      this.#disclosures.inc({ disclosed }, count(`disclosures:${disclosed}`));
    }
    for (const link of AD_LINKS) {
      this.#links.inc({ link }, count(`links:${link}`));
    }
    for (const outcome of ["won", ...OBSTACLES]) {
      this.#auctions.inc({ outcome }, count(`auctions:${outcome}`));
    }
    for (const reason of OBSTACLES) {
      this.#passedOver.inc({ reason }, count(`passed_over:${reason}`));
    }
    this.#reserved.set(count("reserved_micros"));
    for (const [name, counter] of Object.entries(this.#sums)) {
      counter.inc(count(name));
    }
  }

  #counterOf(name: string, help: string): Counter {
    return new Counter({ name, help, registers: [this.#registry] });
  }
}

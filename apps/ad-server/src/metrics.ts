import { INJECTION_OUTCOMES, VERDICTS } from "@adrelay/contract";
import { createRegistry } from "@adrelay/service-kit";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { ResponseStore } from "./store/response-store.ts";

/** Operations as labels name them; requests to other addresses are `other`. */
export type OperationLabel = "start" | "acknowledge" | "look_up" | "report" | "other";

/** Why an offer can't be taken: its budget, the session's cap, or the plan of the day is used up. */
const OBSTACLES = ["no_budget", "capped", "paced"] as const;

/**
 * - `adserver_injections_total{outcome}`: ok, rejected, no_fill. From Redis: exact, and a restart keeps it.
 * - `adserver_acknowledgments_total{status}`: ok, no_ad_used; those recorded, each response once. From Redis.
 * - `adserver_disclosures_total{disclosed}`: true, false; of acknowledgments with ok. From Redis.
 * - `adserver_auctions_total{outcome}`: won, or what stopped the best offer where none was left: no_budget, capped,
 *   paced. `adserver_offers_passed_over_total{reason}`: the same reasons, offer by offer. From Redis.
 * - `adserver_spend_micros_total`, `adserver_reserved_micros`, `adserver_reservations_expired_total`,
 *   `adserver_acknowledgments_unpaid_total`. From Redis.
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
  readonly #auctions = new Counter({
    name: "adserver_auctions_total",
    help: "Auctions held: won, or what stopped the best offer (no_budget, capped, paced).",
    labelNames: ["outcome"],
    registers: [this.#registry],
  });
  readonly #passedOver = new Counter({
    name: "adserver_offers_passed_over_total",
    help: "Offers that could not be taken, by reason (no_budget, capped, paced).",
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
      "Acknowledgments that came after the window and found no budget.",
    ),
  } as const;
  readonly #durations = new Histogram({
    name: "adserver_http_request_duration_seconds",
    help: "Time from a request to the end of its answer.",
    labelNames: ["operation", "status"],
    buckets: [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5],
    registers: [this.#registry],
  });

  constructor(store: Pick<ResponseStore, "loadCounts">) {
    this.#store = store;
  }

  /** Where other parts put theirs. */
  get registry(): Registry {
    return this.#registry;
  }

  /** Notes one finished request. */
  observe(operation: OperationLabel, status: number, durationMs: number): void {
    this.#durations.observe({ operation, status }, durationMs / 1000);
  }

  /** All metrics as of now. While Redis is away its counts are left out: a gap is true, an old number isn't. */
  async collect(): Promise<Registry> {
    const counts = await this.#store.loadCounts();
    const counters = [
      this.#injections,
      this.#acknowledgments,
      this.#disclosures,
      this.#auctions,
      this.#passedOver,
    ];
    for (const metric of [...counters, this.#reserved, ...Object.values(this.#sums)]) {
      metric.reset();
    }
    if (counts.kind === "ok") {
      this.#fill((name) => counts.value.get(name) ?? 0);
    } else {
      // Without labels a metric is there at 0, which would be untrue.
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

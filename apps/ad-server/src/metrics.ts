import { INJECTION_OUTCOMES, VERDICTS } from "@adrelay/contract";
import { createRegistry } from "@adrelay/service-kit";
import { Counter, Histogram, type Registry } from "prom-client";
import type { ResponseStore } from "./store/response-store.ts";

/** Operations as labels name them; requests to other addresses are `other`. */
export type OperationLabel = "start" | "acknowledge" | "look_up" | "other";

/**
 * - `adserver_injections_total{outcome}`: ok, rejected, no_fill. From Redis: exact, and a restart keeps it.
 * - `adserver_acknowledgments_total{status}`: ok, no_ad_used; those recorded, each response once. From Redis.
 * - `adserver_disclosures_total{disclosed}`: true, false; of acknowledgments with ok. From Redis.
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
    this.#injections.reset();
    this.#acknowledgments.reset();
    this.#disclosures.reset();
    if (counts.kind === "ok") {
      for (const outcome of Object.values(INJECTION_OUTCOMES)) {
        this.#injections.inc({ outcome }, counts.value.get(`injections:${outcome}`) ?? 0);
      }
      for (const status of VERDICTS) {
        this.#acknowledgments.inc({ status }, counts.value.get(`acknowledgments:${status}`) ?? 0);
      }
      for (const disclosed of ["true", "false"]) {
        this.#disclosures.inc({ disclosed }, counts.value.get(`disclosures:${disclosed}`) ?? 0);
      }
    }
    return this.#registry;
  }
}

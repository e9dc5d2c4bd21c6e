import { Counter, Gauge, type Registry } from "prom-client";
import type { ReloadOutcome } from "./catalog-watch.ts";
import type { Catalog } from "./current-catalog.ts";

/** The catalogue in force and what became of changes to its file, of this process. */
export class CatalogMetrics {
  readonly #ads: Gauge;
  readonly #loadedAt: Gauge;
  readonly #reloads: Counter<"outcome">;

  constructor(registry: Registry) {
    const registers = [registry];
    this.#ads = new Gauge({
      name: "adserver_catalog_ads",
      help: "Ads in the catalogue in force.",
      registers,
    });
    this.#loadedAt = new Gauge({
      name: "adserver_catalog_loaded_timestamp_seconds",
      help: "When the catalogue in force was put there, in seconds since 1970.",
      registers,
    });
    this.#reloads = new Counter({
      name: "adserver_catalog_reloads_total",
      help: "Looks at a changed catalogue file, by outcome: reloaded, refused, unchanged (in what it says).",
      labelNames: ["outcome"],
      registers,
    });
    for (const outcome of ["reloaded", "refused", "unchanged"] as const satisfies readonly ReloadOutcome[]) {
      this.#reloads.inc({ outcome }, 0);
    }
  }

  inForce({ ads, loadedAtMs }: Catalog): void {
    this.#ads.set(ads.length);
    this.#loadedAt.set(loadedAtMs / 1000);
  }

  count(outcome: ReloadOutcome): void {
    this.#reloads.inc({ outcome });
  }
}

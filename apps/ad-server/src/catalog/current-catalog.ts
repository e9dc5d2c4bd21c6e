import { Counter, Gauge, type Registry } from "prom-client";
import type { DecisionRules } from "../injection/decide-injection.ts";
import type { Ad } from "./ad.ts";

/** A catalogue with the rules that were built from its ads. It is never changed, only replaced. */
export interface Catalog {
  readonly ads: readonly Ad[];
  readonly adsById: ReadonlyMap<string, Ad>;
  readonly rules: DecisionRules;
  readonly loadedAtMs: number;
}

interface CatalogDeps {
  /** Builds the decision rules for these ads. It may be slow, but must not block the event loop for long. */
  buildRules(ads: readonly Ad[]): Promise<DecisionRules>;
  now(): number;
}

/**
 * The catalogue in force. A replacement is built completely before it takes effect. A request that began with the old
 * catalogue keeps it to its end.
 */
export class CurrentCatalog {
  readonly #deps: CatalogDeps;
  #catalog: Catalog;

  private constructor(deps: CatalogDeps, catalog: Catalog) {
    this.#deps = deps;
    this.#catalog = catalog;
  }

  /** Builds the first catalogue. */
  static async open(ads: readonly Ad[], deps: CatalogDeps): Promise<CurrentCatalog> {
    return new CurrentCatalog(deps, await build(ads, deps));
  }

  get now(): Catalog {
    return this.#catalog;
  }

  /** Puts other ads in force. If it throws, the old ones stay in force. */
  async replace(ads: readonly Ad[]): Promise<void> {
    this.#catalog = await build(ads, this.#deps);
  }
}

async function build(ads: readonly Ad[], deps: CatalogDeps): Promise<Catalog> {
  const adsById = new Map(ads.map((ad) => [ad.id, ad]));
  return { ads, adsById, rules: await deps.buildRules(ads), loadedAtMs: deps.now() };
}

/** The outcome of reading a changed catalogue file. `unchanged`: its ads are the same as before. */
export type ReloadOutcome = "reloaded" | "refused" | "unchanged";

/** Metrics of the catalogue in force and of the reloads of its file, each for this process. */
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
      help: "When the catalogue in force took effect, in seconds since 1970.",
      registers,
    });
    this.#reloads = new Counter({
      name: "adserver_catalog_reloads_total",
      help: "Reads of a changed catalogue file, by outcome: reloaded, refused, unchanged (the same ads).",
      labelNames: ["outcome"],
      registers,
    });
    for (const outcome of ["reloaded", "refused", "unchanged"] as const satisfies readonly ReloadOutcome[]) {
      this.#reloads.inc({ outcome }, 0);
    }
  }

  /** Reports the catalogue that is now in force. */
  inForce({ ads, loadedAtMs }: Catalog): void {
    this.#ads.set(ads.length);
    this.#loadedAt.set(loadedAtMs / 1000);
  }

  count(outcome: ReloadOutcome): void {
    this.#reloads.inc({ outcome });
  }
}

import type { DecisionRules } from "../injection/decide-injection.ts";
import type { Ad } from "./ad.ts";

/** Makes what decisions rest on from ads. It may take its time, and must leave the event loop room. */
export type BuildRules = (ads: readonly Ad[]) => Promise<DecisionRules>;

/** A catalogue that can be decided by: its ads and what was built of them. Never changed, only replaced. */
export interface Catalog {
  readonly ads: readonly Ad[];
  readonly adsById: ReadonlyMap<string, Ad>;
  readonly rules: DecisionRules;
  readonly loadedAtMs: number;
}

export interface CatalogDeps {
  readonly buildRules: BuildRules;
  now(): number;
}

/**
 * The catalogue in force. A replacement is built whole beside it and then takes its place at once; a request
 * that took the old one keeps it to its end.
 */
export class CurrentCatalog {
  readonly #deps: CatalogDeps;
  #catalog: Catalog;

  private constructor(deps: CatalogDeps, catalog: Catalog) {
    this.#deps = deps;
    this.#catalog = catalog;
  }

  /** The first catalogue, ready to be decided by. */
  static async open(ads: readonly Ad[], deps: CatalogDeps): Promise<CurrentCatalog> {
    return new CurrentCatalog(deps, await build(ads, deps));
  }

  get now(): Catalog {
    return this.#catalog;
  }

  /** Puts other ads in force. If it throws, the old ones stay. */
  async replace(ads: readonly Ad[]): Promise<void> {
    this.#catalog = await build(ads, this.#deps);
  }
}

async function build(ads: readonly Ad[], { buildRules, now }: CatalogDeps): Promise<Catalog> {
  const adsById = new Map(ads.map((ad) => [ad.id, ad]));
  return { ads, adsById, rules: await buildRules(ads), loadedAtMs: now() };
}

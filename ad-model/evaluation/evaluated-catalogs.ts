import type { Ad } from "../../apps/ad-server/src/catalog/ad.ts";
import { loadCatalog } from "../../apps/ad-server/src/catalog/load-catalog.ts";
import { SHIPPED_CATALOG_FILE } from "../../apps/ad-server/src/config.ts";
import { SECOND_CATALOG_FILE } from "./evaluated-sets.ts";

/** Reads a catalogue. Throws a SyntaxError that names its first fault. */
export function loadAds(file: string): readonly Ad[] {
  const catalog = loadCatalog(file);
  if (catalog.kind === "ok") {
    return catalog.ads;
  }
  const [fault] = catalog.faults;
  throw new SyntaxError(`${fault?.path}: ${fault?.message}`);
}

export const loadFirstAds = () => loadAds(SHIPPED_CATALOG_FILE);
export const loadSecondAds = () => loadAds(SECOND_CATALOG_FILE);

/** Both catalogues together, shown to anyone at any time: every wish that they serve gets an ad. */
export function loadJoinedAds(): readonly Ad[] {
  return [...loadFirstAds(), ...loadSecondAds()].map((ad) => ({
    ...ad,
    targeting: {},
    adult: undefined,
    negative_keywords: undefined,
    negative_topics: undefined,
    start: undefined,
    end: undefined,
  }));
}

import type { Ad } from "../../apps/ad-server/src/catalog/ad.ts";
import { describeFault } from "../../apps/ad-server/src/catalog/catalog-places.ts";
import { loadCatalog } from "../../apps/ad-server/src/catalog/load-catalog.ts";
import { SHIPPED_CATALOG_FILE } from "../../apps/ad-server/src/config.ts";
import { SECOND_CATALOG_FILE } from "./evaluated-sets.ts";

/** Reads a catalogue. Throws a SyntaxError that names its faults, one on each line. */
export function loadAds(file: string): readonly Ad[] {
  const catalog = loadCatalog(file);
  if (catalog.kind === "ok") {
    return catalog.ads;
  }
  throw new SyntaxError(
    catalog.faults
      .map((fault) => `${fault.path.replace("CATALOG_FILE ", "")}: ${describeFault(fault)}`)
      .join("\n"),
  );
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

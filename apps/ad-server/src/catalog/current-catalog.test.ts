import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { SHIPPED_MODEL } from "../../testdata/shipped-model.ts";
import { loadPromptRules } from "../injection/decide-injection.ts";
import { NegativeKeywords } from "../relevance/negative-keywords.ts";
import { NegativeTopics } from "../relevance/negative-topics.ts";
import type { Ad } from "./ad.ts";
import { type Catalog, CurrentCatalog } from "./current-catalog.ts";
import { parseCatalog } from "./load-catalog.ts";

function adsNamed(...names: string[]): readonly Ad[] {
  const parsed = parseCatalog(
    names.map((name) => ({ ...PLAIN_AD, id: name.toLowerCase(), product_name: name })),
  );
  return parsed.kind === "ok" ? parsed.ads : [];
}

const promptRules = await loadPromptRules(SHIPPED_MODEL);
const scored = (ad: Ad) => ({ ad, score: 1 });

function idsFoundBy({ rules }: Catalog): string[] {
  return rules.relevance.rank(rules.model.read("shoes")).map(({ ad }) => ad.id);
}

/**
 * Rules that rank every ad. Building them for several ads waits for `resume`; building them for an ad called Broken
 * fails.
 */
function setup() {
  const pending = { resume: () => {} };
  const buildRules = async (ads: readonly Ad[]) => {
    if (ads.length > 1) {
      await new Promise<void>((resolve) => {
        pending.resume = resolve;
      });
    }
    if (ads.some(({ product_name }) => product_name === "Broken")) {
      throw new RangeError("these ads can't be ranked");
    }
    return {
      ...promptRules,
      relevance: { rank: () => ads.map(scored) },
      negativeKeywords: NegativeKeywords.of(ads),
      negativeTopics: await NegativeTopics.build(ads, promptRules.model),
      floorCpmMicros: 0,
    };
  };
  return { pending, deps: { buildRules, now: () => 7 } };
}

test("a request keeps the catalogue it began with, and the next one gets the new one", async () => {
  const { deps, pending } = setup();
  const current = await CurrentCatalog.open(adsNamed("Drift"), deps);
  const taken = current.now;
  const replacing = current.replace(adsNamed("Tempo", "Pace"));
  expect(current.now).toBe(taken);
  pending.resume();
  await replacing;
  expect(idsFoundBy(taken)).toEqual(["drift"]);
  expect(idsFoundBy(current.now)).toEqual(["tempo", "pace"]);
  expect(current.now.adsById.get("pace")?.product_name).toBe("Pace");
});

test("if no rules can be built for new ads, the old ads stay in force", async () => {
  const { deps } = setup();
  const current = await CurrentCatalog.open(adsNamed("Drift"), deps);
  await expect(current.replace(adsNamed("Broken"))).rejects.toThrow(RangeError);
  expect(current.now.ads.map(({ id }) => id)).toEqual(["drift"]);
});

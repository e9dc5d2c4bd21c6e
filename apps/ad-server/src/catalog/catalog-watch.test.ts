import { expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { diffCatalogs } from "./catalog-watch.ts";
import { parseCatalog } from "./load-catalog.ts";

const AD = { ...PLAIN_AD, id: "a" };

function adsOf(...ads: object[]) {
  const parsed = parseCatalog(ads);
  return parsed.kind === "ok" ? parsed.ads : [];
}

test("a diff has the added and removed ads and the changed fields", async () => {
  const before = adsOf(
    AD,
    { ...AD, id: "b" },
    { ...AD, id: "c", targeting: { countries: ["US"], age_min: 18 } },
  );
  const after = adsOf(
    { ...AD, bid_cpm_micros: 2, end: "2029-01-01T00:00:00Z" },
    { ...AD, id: "c", targeting: { countries: ["CA"], age_min: 18 } },
    { ...AD, id: "d" },
  );
  expect(await diffCatalogs(before, after)).toEqual({
    added: ["d"],
    removed: ["b"],
    changed: [
      { id: "a", fields: ["bid_cpm_micros", "end"] },
      { id: "c", fields: ["targeting.countries"] },
    ],
  });
});

test("another order of ads or fields is no change", async () => {
  const { id, ...rest } = AD;
  const after = adsOf({ ...AD, id: "b" }, { ...rest, id });
  expect(await diffCatalogs(adsOf(AD, { ...AD, id: "b" }), after)).toEqual({
    added: [],
    removed: [],
    changed: [],
  });
});

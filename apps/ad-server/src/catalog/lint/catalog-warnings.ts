import type { FieldFault } from "@adrelay/contract";
import { TermReader } from "../../relevance/terms.ts";
import { ADULT_AGE, isForAdults } from "../../targeting/adult-ads.ts";
import type { Ad } from "../ad.ts";

export interface LintOptions {
  /** The time by which flights are judged, in milliseconds since 1970. */
  readonly nowMs: number;
  /** The least that a bid must be to take part. */
  readonly floorCpmMicros: number;
  /** Categories whose needs the prompt model tells. */
  readonly categories: ReadonlySet<string>;
}

/** A bid is for so many impressions. */
const IMPRESSIONS_OF_A_BID = 1000;

/** What a sound catalogue holds that is hardly meant: by the places of the ads. */
export function warningsOf(ads: readonly Ad[], options: LintOptions): FieldFault[] {
  const reader = new TermReader();
  const names = Map.groupBy(ads, ({ product_name }) => product_name.trim().toLowerCase());
  return ads.flatMap((ad, index) =>
    [
      ...flightWarnings(ad, options.nowMs),
      ...moneyWarnings(ad, options.floorCpmMicros),
      ...nameWarnings(ad, names.get(ad.product_name.trim().toLowerCase()) ?? []),
      ...findingWarnings(ad, options.categories, reader),
      ...ageWarnings(ad),
      ...emptyListWarnings(ad),
    ].map(({ path, message }) => ({ path: `${index}.${path}`, message })),
  );
}

function flightWarnings({ end }: Ad, nowMs: number): FieldFault[] {
  return end !== undefined && end < nowMs
    ? [{ path: "end", message: "is over: the ad is never shown again" }]
    : [];
}

function moneyWarnings({ bid_cpm_micros, budget_micros }: Ad, floorCpmMicros: number): FieldFault[] {
  const impressionMicros = Math.max(
    Math.floor(bid_cpm_micros / IMPRESSIONS_OF_A_BID),
    Math.ceil(floorCpmMicros / IMPRESSIONS_OF_A_BID),
  );
  return [
    ...(bid_cpm_micros < floorCpmMicros
      ? [
          {
            path: "bid_cpm_micros",
            message: `is below the floor of ${floorCpmMicros}: the ad is never shown`,
          },
        ]
      : []),
    ...(budget_micros < impressionMicros
      ? [
          {
            path: "budget_micros",
            message: `doesn't buy one impression at its bid, which is ${impressionMicros}`,
          },
        ]
      : []),
  ];
}

function nameWarnings(ad: Ad, namesakes: readonly Ad[]): FieldFault[] {
  const [first] = namesakes;
  return first === undefined || first === ad
    ? []
    : [{ path: "product_name", message: `is that of ${first.id} too: answers can't tell them apart` }];
}

function findingWarnings(
  { keywords, category }: Ad,
  categories: ReadonlySet<string>,
  reader: TermReader,
): FieldFault[] {
  const seen = new Set<string>();
  const ofKeywords = keywords.flatMap((keyword, index) => {
    const terms = reader.termsOf(keyword).join(" ");
    const isRepeated = seen.has(terms);
    seen.add(terms);
    const path = `keywords.${index}`;
    if (terms === "") {
      return [{ path, message: "has only words that every prompt may hold: none is found by it" }];
    }
    return isRepeated ? [{ path, message: "says what an earlier keyword says" }] : [];
  });
  return categories.has(category)
    ? ofKeywords
    : [
        ...ofKeywords,
        { path: "category", message: "isn't one that the prompt model knows: only keywords find it" },
      ];
}

function ageWarnings(ad: Ad): FieldFault[] {
  return isForAdults(ad) && (ad.targeting.age_min ?? 0) < ADULT_AGE
    ? [
        {
          path: ad.targeting.age_min === undefined ? "targeting" : "targeting.age_min",
          message: `should have an age_min of ${ADULT_AGE}: it is shown to adults alone`,
        },
      ]
    : [];
}

function emptyListWarnings({ targeting }: Ad): FieldFault[] {
  return Object.entries(targeting).flatMap(([name, value]) =>
    Array.isArray(value) && value.length === 0
      ? [
          {
            path: `targeting.${name}`,
            message: "is empty: the ad is never shown; leave it out for everybody",
          },
        ]
      : [],
  );
}

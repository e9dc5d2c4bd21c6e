import { type FieldFault, readCountry } from "@adrelay/contract";
import { ADULT_AGE, isForAdults } from "../injection/targeting.ts";
import { IMPRESSIONS_PER_MILLE } from "../money/auction.ts";
import type { AdClarity, AdExplanation } from "../relevance/ad-reading.ts";
import { keywordKeys } from "../relevance/negative-keywords.ts";
import type { TopicUse } from "../relevance/negative-topics.ts";
import type { Ad } from "./ad.ts";
import { parseCatalogYaml } from "./catalog-file.ts";
import { placesIn } from "./catalog-places.ts";
import { negativeKeywordWarnings } from "./lint-negative-keywords.ts";
import { negativeTopicWarnings } from "./lint-negative-topics.ts";
import { parseCatalog } from "./load-catalog.ts";

/** An error or a warning with its place in the file. Lines and columns count from 1. */
export interface Finding {
  readonly severity: "error" | "warning";
  /** Such as `3.targeting.age_min`, which is a field of the fourth ad; empty for the file as a whole. */
  readonly path: string;
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

export interface LintOptions {
  /** The current time in milliseconds since 1970: flights that ended before it are over. */
  readonly nowMs: number;
  /** The least bid that takes part in auctions. */
  readonly floorCpmMicros: number;
  /** What the ad is read as. */
  explain(ad: Ad): AdExplanation;
  /** What a negative topic of the ad does. */
  judgeTopic(topic: string, ad: Ad): TopicUse;
}

/** Checks the text of a catalogue file. Returns its errors or, if there are none, warnings about likely mistakes. */
export function lintCatalog(text: string, options: LintOptions): Finding[] {
  const read = parseCatalogYaml(text);
  if (read.kind === "faulty") {
    const { line, column, message } = read;
    return [{ severity: "error", path: "", line, column, message }];
  }
  const parsed = parseCatalog(read.value);
  const [severity, faults] =
    parsed.kind === "ok"
      ? (["warning", warningsOf(parsed.ads, options)] as const)
      : (["error", parsed.faults.map(withoutSetting)] as const);
  const placeOf = placesIn(text);
  return faults
    .map(({ path, message }) => ({ severity, path, ...placeOf(path), message }))
    .sort((one, other) => one.line - other.line || one.column - other.column);
}

function withoutSetting({ path, message }: FieldFault): FieldFault {
  return { path: path.replace(/^CATALOG_FILE ?/, ""), message };
}

/** Likely mistakes in a catalogue without errors. */
function warningsOf(ads: readonly Ad[], options: LintOptions): FieldFault[] {
  const names = Map.groupBy(ads, ({ product_name }) => product_name.trim().toLowerCase());
  return ads.flatMap((ad, index) =>
    [
      ...flightWarnings(ad, options.nowMs),
      ...moneyWarnings(ad, options.floorCpmMicros),
      ...nameWarnings(ad, names.get(ad.product_name.trim().toLowerCase()) ?? []),
      ...findingWarnings(ad, options),
      ...negativeKeywordWarnings(ad),
      ...negativeTopicWarnings(ad, options.judgeTopic),
      ...ageWarnings(ad),
      ...emptyListWarnings(ad),
      ...countryWarnings(ad),
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
    Math.floor(bid_cpm_micros / IMPRESSIONS_PER_MILLE),
    Math.ceil(floorCpmMicros / IMPRESSIONS_PER_MILLE),
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
    : [{ path: "product_name", message: `is that of ${first.id} too: answers can't distinguish them` }];
}

const CLARITY_MESSAGES = {
  clear: undefined,
  unclear: "and the other texts don't say clearly what is sold: the ad is hardly ever found",
  unknown:
    "and the other texts are read as something that the model knows no need for: the ad is never found",
} as const satisfies Record<AdClarity, string | undefined>;

function findingWarnings(ad: Ad, { explain }: LintOptions): FieldFault[] {
  const keys = keywordKeys(ad.keywords);
  const repeated = keys.flatMap((key, index) =>
    keys.indexOf(key) < index
      ? [{ path: `keywords.${index}`, message: "says what an earlier keyword says" }]
      : [],
  );
  const message = CLARITY_MESSAGES[explain(ad).clarity];
  return message === undefined ? repeated : [...repeated, { path: "description", message }];
}

function ageWarnings(ad: Ad): FieldFault[] {
  return isForAdults(ad) && (ad.targeting.age_min ?? 0) < ADULT_AGE
    ? [
        {
          path: ad.targeting.age_min === undefined ? "targeting" : "targeting.age_min",
          message: `should have an age_min of ${ADULT_AGE}: it is shown to adults only`,
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
            message: "is empty, so the ad is never shown; leave the list out to show it to everybody",
          },
        ]
      : [],
  );
}

function countryWarnings({ targeting }: Ad): FieldFault[] {
  return (targeting.countries ?? []).flatMap((code, index) =>
    readCountry(code) === undefined
      ? [{ path: `targeting.countries.${index}`, message: "is no country's code, so no request has it" }]
      : [],
  );
}

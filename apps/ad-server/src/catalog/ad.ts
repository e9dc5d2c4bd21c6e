import { AGE_MAX, ASN_MAX, GENDERS } from "@adrelay/contract";
import { z } from "zod";

/** Text that ends up in a prompt: short, so that an ad can't crowd out the question. */
const adText = (maxLength: number) => z.string().min(1).max(maxLength);
/** Bound of a bid, so that bid × relevance stays below 2^53: a million of the currency per mille. */
export const BID_CPM_MICROS_MAX = 1_000_000_000_000;
/** Longest window of a frequency cap: a year. */
const CAP_HOURS_MAX = 8784;
const ages = z.int().min(0).max(AGE_MAX);

/** Whom an ad may be shown to. An absent key means no restriction; names are those of the request's context. */
export const targetingSchema = z.strictObject({
  countries: z.array(z.string().regex(/^[A-Z]{2}$/)).optional(),
  /** ISO 3166-2 codes such as US-CA. */
  regions: z.array(z.string().min(1)).optional(),
  cities: z.array(z.string().min(1)).optional(),
  asns: z.array(z.int().min(0).max(ASN_MAX)).optional(),
  /** Whole years, both bounds included. */
  age_min: ages.optional(),
  age_max: ages.optional(),
  genders: z.array(z.enum(GENDERS)).optional(),
  /** Languages of the prompt, ISO 639-1. */
  languages: z.array(z.string().regex(/^[a-z]{2}$/)).optional(),
});
export type Targeting = z.infer<typeof targetingSchema>;

const instant = z.iso.datetime().transform((text) => Date.parse(text));

/** One ad as the catalogue file writes it. */
export const adSchema = z
  .strictObject({
    id: z.string().regex(/^[a-z0-9][a-z0-9-]{0,63}$/, "must be 1 to 64 small letters, digits or -"),
    product_name: adText(80),
    advertiser: adText(80),
    category: z.string().regex(/^[a-z0-9-]{1,64}$/),
    description: adText(400),
    keywords: z.array(adText(80)).min(1).max(50),
    landing_url: z.url({ protocol: /^https$/ }),
    /** What is bid for a thousand impressions. */
    bid_cpm_micros: z.int().min(0).max(BID_CPM_MICROS_MAX),
    budget_micros: z.int().min(0),
    /** Only for people known to be 18 or older, whatever the targeting says. */
    adult: z.boolean().optional(),
    targeting: targetingSchema.default({}),
    frequency_cap: z
      .strictObject({ per_session: z.int().min(1), per_hours: z.number().positive().max(CAP_HOURS_MAX) })
      .optional(),
    /** The flight, both ends included, as milliseconds since 1970; an absent end is open. */
    start: instant.optional(),
    end: instant.optional(),
  })
  .refine((ad) => ad.start === undefined || ad.end === undefined || ad.start <= ad.end, {
    path: ["end"],
    message: "must not be before start",
  })
  .refine(({ targeting: { age_min, age_max } }) => (age_min ?? 0) <= (age_max ?? AGE_MAX), {
    path: ["targeting", "age_max"],
    message: "must not be below age_min",
  });
export type Ad = z.infer<typeof adSchema>;

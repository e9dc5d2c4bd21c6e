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
  countries: z
    .array(z.string().regex(/^[A-Z]{2}$/))
    .optional()
    .describe("ISO 3166-1 codes of two letters, such as US."),
  regions: z.array(z.string().min(1)).optional().describe("ISO 3166-2 codes, such as US-CA, in any case."),
  cities: z.array(z.string().min(1)).optional().describe("Names of cities, in any case."),
  asns: z.array(z.int().min(0).max(ASN_MAX)).optional().describe("Numbers of networks."),
  age_min: ages.optional().describe("Least age in whole years, itself included."),
  age_max: ages.optional().describe("Greatest age in whole years, itself included."),
  genders: z.array(z.enum(GENDERS)).optional().describe("Genders that the request may tell."),
  languages: z
    .array(z.string().regex(/^[a-z]{2}$/))
    .optional()
    .describe("Languages of the prompt, ISO 639-1, such as en."),
});
export type Targeting = z.infer<typeof targetingSchema>;

const instant = z.iso.datetime().transform((text) => Date.parse(text));

/** One ad as the catalogue file writes it. */
export const adSchema = z
  .strictObject({
    id: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,63}$/, "must be 1 to 64 small letters, digits or -")
      .describe("Name of the ad in reports and logs; it stands once."),
    product_name: adText(80).describe("As answers shall name the product, maker first."),
    advertiser: adText(80).describe("Who pays; one word of the product's name, where it can be."),
    category: z
      .string()
      .regex(/^[a-z0-9-]{1,64}$/)
      .describe(
        "What is sold, in small letters with -; the prompt model knows the shipped ones, others are found by keywords alone.",
      ),
    description: adText(400).describe(
      "What the model may say of the product: facts for buyers, no instructions.",
    ),
    keywords: z.array(adText(80)).min(1).max(50).describe("What people say who want it."),
    landing_url: z
      .url({ protocol: /^https$/ })
      .regex(/^https:\/\//, "must begin with https://")
      .max(2048)
      .describe("The page that answers may link to; texts may name no other domain."),
    bid_cpm_micros: z
      .int()
      .min(0)
      .max(BID_CPM_MICROS_MAX)
      .describe("What is bid for a thousand impressions, in micros: 4200000 is 4.20."),
    budget_micros: z.int().min(0).describe("The most that is ever spent, in micros."),
    adult: z
      .boolean()
      .optional()
      .describe("Only for people known to be 18 or older, whatever the targeting says."),
    targeting: targetingSchema
      .default({})
      .describe("Whom it may be shown to; what is absent is no restriction."),
    frequency_cap: z
      .strictObject({ per_session: z.int().min(1), per_hours: z.number().positive().max(CAP_HOURS_MAX) })
      .optional()
      .describe("How often one session may see it within so many hours."),
    /** The flight, both ends included, as milliseconds since 1970; an absent end is open. */
    start: instant.optional().describe("When it may first be shown, such as 2026-01-31T00:00:00Z."),
    end: instant.optional().describe("When it may last be shown, itself included."),
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

import { AGE_MAX, ASN_MAX, GENDERS, readCountry, readName } from "@adrelay/contract";
import { z } from "zod";
import { asciiLandingUrl } from "./landing-url.ts";

/** Text that becomes part of a prompt. It is short, so that an ad can't crowd out the question. */
const adText = (maxLength: number) => z.string().min(1).max(maxLength);
/** Greatest bid: a million units of the currency per mille. It keeps bid × relevance below 2^53. */
export const BID_CPM_MICROS_MAX = 1_000_000_000_000;
/** Longest window of a frequency cap: a year. */
const CAP_HOURS_MAX = 8784;
/** The name of a place, in the form in which requests are read. */
const placeName = z
  .string()
  .min(1)
  .transform((name) => readName(name) ?? name);
const ages = z.int().min(0).max(AGE_MAX);

/**
 * Whom an ad may be shown to. An absent key is no restriction. The names are those of the request's optional context.
 */
const targetingSchema = z.strictObject({
  countries: z
    .array(
      z
        .string()
        .regex(/^[A-Z]{2}$/, "must be two capital letters, such as US")
        // Requests are read by the same rule: UK is GB.
        .transform((code) => readCountry(code) ?? code),
    )
    .optional()
    .describe("ISO 3166-1 codes of two letters, such as US."),
  regions: z.array(placeName).optional().describe("ISO 3166-2 codes, such as US-CA, in any case."),
  cities: z.array(placeName).optional().describe("Names of cities, in any case."),
  asns: z.array(z.int().min(0).max(ASN_MAX)).optional().describe("Numbers of autonomous systems (networks)."),
  age_min: ages.optional().describe("Least age in whole years, inclusive."),
  age_max: ages.optional().describe("Greatest age in whole years, inclusive."),
  genders: z.array(z.enum(GENDERS)).optional().describe("Genders, as requests give them."),
  languages: z
    .array(z.string().regex(/^[a-z]{2}$/, "must be two small letters, such as en"))
    .optional()
    .describe("Languages of the prompt, ISO 639-1, such as en."),
});

const instant = z.iso
  .datetime("must be a time such as 2026-01-31T00:00:00Z")
  .transform((text) => Date.parse(text));

/** One ad as a catalogue file has it. */
export const adSchema = z
  .strictObject({
    id: z
      .string()
      .regex(/^[a-z0-9][a-z0-9-]{0,63}$/, "must be 1 to 64 small letters, digits or -")
      .describe("Name of the ad in reports and logs. It must be unique in the file."),
    product_name: adText(80).describe("The product's name as answers should write it, maker first."),
    advertiser: adText(80).describe("Who pays; a word of the product's name, if possible."),
    category: z
      .string()
      .regex(/^[a-z0-9-]{1,64}$/, "must be 1 to 64 small letters, digits or -")
      .describe(
        "What is sold, in small letters, digits and -, such as car-rental. Any category will do; its words are read as a part of the ad.",
      ),
    description: adText(400).describe(
      "What the model may say about the product: facts for buyers, no instructions.",
    ),
    keywords: z.array(adText(80)).min(1).max(50).describe("What people write when they want the product."),
    negative_keywords: z
      .array(adText(80))
      .max(50)
      .optional()
      .describe("The ad isn't shown beside a prompt with all words of one of them in one sentence."),
    negative_topics: z
      .array(adText(200))
      .max(20)
      .optional()
      .describe(
        "What the ad isn't shown beside, judged by meaning: a product or service in a few words each.",
      ),
    landing_url: z
      .string()
      .regex(/^\s*https:\/\//, "must begin with https://")
      .max(2048)
      .transform((written, context) => {
        const url = asciiLandingUrl(written);
        if (url === undefined) {
          context.addIssue({ code: "custom", message: "must be a URL" });
        }
        return url ?? "";
      })
      .describe("The page that answers may link to. The ad's texts must name no other domain."),
    bid_cpm_micros: z
      .int()
      .min(0)
      .max(BID_CPM_MICROS_MAX)
      .describe("Bid for a thousand impressions, in micros: 4200000 is 4.20."),
    budget_micros: z.int().min(0).describe("The most that is ever spent on the ad, in micros."),
    adult: z
      .boolean()
      .optional()
      .describe("Show the ad only to people who are known to be 18 or older, whatever the targeting says."),
    targeting: targetingSchema
      .prefault({})
      .describe("Whom the ad may be shown to. An absent key is no restriction."),
    frequency_cap: z
      .strictObject({ per_session: z.int().min(1), per_hours: z.number().positive().max(CAP_HOURS_MAX) })
      .optional()
      .describe("How often one session may see the ad within a number of hours."),
    /** Start and end of the flight, both inclusive, as milliseconds since 1970. An absent one is no restriction. */
    start: instant.optional().describe("When the ad may first be shown, such as 2026-01-31T00:00:00Z."),
    end: instant.optional().describe("When the ad may last be shown, inclusive."),
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

/** The form of a catalogue file. It doesn't check that ids are unique, and it doesn't screen texts. */
export const catalogFormSchema = z.array(adSchema).min(1, "must hold at least one ad");

/**
 * The JSON schema of a catalogue file, for editors. It has no rules over two fields and no screening: the server may
 * refuse a file that it accepts, but the server never accepts a file that it refuses.
 */
export function catalogJsonSchema(): object {
  return {
    title: "Ads of the ad server",
    description: "Generated from the code by `npm run generate`: edit there.",
    ...z.toJSONSchema(catalogFormSchema, { io: "input" }),
  };
}

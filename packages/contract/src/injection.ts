/** The first of the ad service's two operations: request an ad for a prompt. */
import { z } from "zod";
import { adResponseIdSchema } from "./ids-and-paths.ts";

/** How ad instructions are wrapped in the enhanced prompt. The interface documents `xml`; we added the others. */
export const WRAPPING_TYPES = ["xml", "plain", "markdown"] as const;
/** The genders that `optional_context.gender` can name. */
export const GENDERS = ["male", "female", "other"] as const;

/** The highest age that `optional_context.age` can give, in years. */
export const AGE_MAX = 120;
/** The highest number of an autonomous system: 32 bits. */
export const ASN_MAX = 4_294_967_295;

const nonEmpty = z.string().min(1, "must not be empty");

/**
 * Body of an injection, as our ad server enforces it. The gateway does not apply this schema: it forwards bodies
 * unread, so that a provider with wider or newer rules works through it. Unknown fields are allowed everywhere.
 */
export const injectionRequestSchema = z.looseObject({
  prompt: nonEmpty,
  request_context: z.looseObject({
    session_id: nonEmpty,
    user_agent: nonEmpty,
    user_ip: z.union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or IPv6 address" }),
  }),
  request_configuration: z.looseObject({ wrapping_type: z.enum(WRAPPING_TYPES).optional() }).optional(),
  optional_context: z
    .looseObject({
      country: z
        .string()
        .regex(/^[A-Z]{2}$/, "must be two upper-case letters")
        .optional(),
      region: z.string().optional(),
      city: z.string().optional(),
      asn: z.int().min(0).max(ASN_MAX).optional(),
      age: z.int().min(0).max(AGE_MAX).optional(),
      gender: z.enum(GENDERS).optional(),
    })
    .optional(),
});
/** A checked injection request. */
export type InjectionRequest = z.infer<typeof injectionRequestSchema>;

/** The HTTP statuses whose body is an ad response, with the outcome that each status means. */
export const INJECTION_OUTCOMES = { 200: "ok", 201: "rejected", 202: "no_fill" } as const;
/** What an injection resulted in: an ad, a rejected prompt, or no ad for the prompt. */
export type InjectionOutcome = (typeof INJECTION_OUTCOMES)[keyof typeof INJECTION_OUTCOMES];

/** Body of a 200 answer: an ad was found. Its `enhanced_prompt` replaces the user's prompt. */
export const filledResponseSchema = z.looseObject({
  ad_request_id: z.guid(),
  ad_response_id: adResponseIdSchema,
  status: z.string(),
  success: z.literal(true),
  execution_time_ms: z.number(),
  enhanced_prompt: nonEmpty,
  product_name: z.string(),
});

/** Body of a 201 or 202 answer: there is no ad, and the user's prompt goes to the model unchanged. */
export const unfilledResponseSchema = z.looseObject({
  ad_request_id: z.guid(),
  ad_response_id: adResponseIdSchema,
  status: z.string(),
  success: z.literal(false),
  execution_time_ms: z.number(),
  enhanced_prompt: z.null(),
  product_name: z.null(),
});

/** Body of a 200, 201 or 202 answer to an injection. */
export type EnhancementResponse =
  | z.infer<typeof filledResponseSchema>
  | z.infer<typeof unfilledResponseSchema>;

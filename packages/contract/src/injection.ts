/** The first of the ad service's two operations: request an ad for a prompt. */
import { z } from "zod";
import {
  AGE_MAX,
  isAgeTooHigh,
  isLongCountryCode,
  readAddress,
  readAge,
  readAsn,
  readGender,
  readName,
  readText,
} from "./attributes.ts";
import { readCountry } from "./country-codes.ts";
import { adResponseIdSchema } from "./ids-and-paths.ts";

/** How ad instructions are wrapped in the enhanced prompt. The interface documents `xml`; we added the others. */
export const WRAPPING_TYPES = ["xml", "plain", "markdown"] as const;

const nonEmpty = z.string({ error: "must be a string" }).min(1, "must not be empty");

const wrappingType = z.preprocess(
  (value) => (typeof value === "string" ? value.trim().toLowerCase() || undefined : (value ?? undefined)),
  z.enum(WRAPPING_TYPES, { error: `must be one of ${WRAPPING_TYPES.join(", ")}` }).optional(),
);

/** An attribute of the end user. It may have any value. */
function attribute<T>(read: (value: unknown) => T | undefined) {
  return z.unknown().transform(read).optional();
}

/** A member that may be absent or null, which both mean the same. */
function optional<T extends z.ZodType>(type: T) {
  return type.nullish().transform((value) => value ?? undefined);
}

/**
 * Body of an injection, as our ad server reads it. The gateway does not apply this schema: it forwards bodies
 * unread, so that a provider with wider or newer rules works through it. Unknown fields are allowed everywhere.
 *
 * An attribute of the end user that is null or can't be read is undefined. Two values are refused, because they are
 * mistakes of a program and not the state of one user: a country of three letters, and an age that nobody has.
 */
export const injectionRequestSchema = z.looseObject({
  prompt: nonEmpty,
  request_context: z.looseObject(
    {
      session_id: nonEmpty,
      user_agent: attribute(readText),
      user_ip: attribute(readAddress),
    },
    { error: "must be an object with session_id, and with user_agent and user_ip if they are known" },
  ),
  request_configuration: optional(
    z.looseObject({ wrapping_type: wrappingType }, { error: "must be an object, null or absent" }),
  ),
  optional_context: optional(
    z.looseObject(
      {
        country: z
          .unknown()
          .refine((value) => !isLongCountryCode(value), "must be a code of two letters, such as US")
          .transform(readCountry)
          .optional(),
        region: attribute(readName),
        city: attribute(readName),
        asn: attribute(readAsn),
        age: z
          .unknown()
          .refine((value) => !isAgeTooHigh(value), `must be at most ${AGE_MAX}`)
          .transform(readAge)
          .optional(),
        gender: attribute(readGender),
      },
      { error: "must be an object, null or absent" },
    ),
  ),
});
/** A checked injection request. */
export type InjectionRequest = z.infer<typeof injectionRequestSchema>;

/** The attributes of an end user, as paths in an injection's body. */
const ATTRIBUTES = [
  ["request_context", "user_agent"],
  ["request_context", "user_ip"],
  ["optional_context", "country"],
  ["optional_context", "region"],
  ["optional_context", "city"],
  ["optional_context", "asn"],
  ["optional_context", "age"],
  ["optional_context", "gender"],
] as const;
/** The name of an attribute of an end user. */
export type AttributeName = (typeof ATTRIBUTES)[number][1];
/** All attributes of an end user. */
export const ATTRIBUTE_NAMES: readonly AttributeName[] = ATTRIBUTES.map(([, name]) => name);

/** An attribute that a request has, but in a form that can't be read. */
export interface UnreadableAttribute {
  readonly name: AttributeName;
  /** Such as `optional_context.country`. */
  readonly path: string;
}

/**
 * The attributes of a checked request that are unknown although its body has a value for them. Those that every body
 * should have are unreadable if they are absent, too.
 *
 * @param body the request's body as it was sent
 */
export function unreadableAttributes(body: unknown, request: InjectionRequest): UnreadableAttribute[] {
  return ATTRIBUTES.filter(([group, name]) => {
    const isRequired = group === "request_context";
    return memberOf(request[group], name) === undefined && (isRequired || hasValue(body, group, name));
  }).map(([group, name]) => ({ name, path: `${group}.${name}` }));
}

/**
 * The session of an injection's body; undefined if it has none in the form of the interface. The gateway forwards such
 * a body all the same.
 */
export function sessionIdOf(body: unknown): string | undefined {
  const session = memberOf(memberOf(body, "request_context"), "session_id");
  return typeof session === "string" && session !== "" ? session : undefined;
}

function hasValue(body: unknown, group: string, name: string): boolean {
  return (memberOf(memberOf(body, group), name) ?? undefined) !== undefined;
}

function memberOf(value: unknown, name: string): unknown {
  const descriptor = Object.getOwnPropertyDescriptor(Object(value), name);
  return descriptor?.value;
}

/** The HTTP statuses whose body is an ad response, with the outcome that each status means. */
export const INJECTION_OUTCOMES = { 200: "ok", 201: "rejected", 202: "no_fill" } as const;
/** What an injection resulted in: an ad, a rejected prompt, or no ad for the prompt. */
export type InjectionOutcome = (typeof INJECTION_OUTCOMES)[keyof typeof INJECTION_OUTCOMES];

/**
 * What the relay needs of a provider's 200: an ad was found, and its `enhanced_prompt` replaces the user's prompt. All other
 * members reach the caller, whatever they are.
 */
export const filledResponseSchema = z.looseObject(
  {
    ad_response_id: adResponseIdSchema,
    enhanced_prompt: nonEmpty,
    /** Only for what is found of the ad in the answer. */
    product_name: z.string().optional().catch(undefined),
    success: z
      .unknown()
      .refine((value) => value !== false, "must not be false in a 200")
      .optional(),
  },
  { error: "must be a JSON object" },
);
/** A checked 200 of a provider. */
export type FilledResponse = z.infer<typeof filledResponseSchema>;

/**
 * What the relay needs of a provider's 201 or 202: there is no ad, and the user's prompt goes to the model unchanged. Its id
 * is only needed to refuse an acknowledgment that a caller sends by mistake, so an unusable one counts as absent.
 */
export const unfilledResponseSchema = z.looseObject(
  {
    ad_response_id: adResponseIdSchema.optional().catch(undefined),
    success: z
      .unknown()
      .refine((value) => value !== true, "must not be true in a 201 or 202")
      .optional(),
  },
  { error: "must be a JSON object" },
);

const responseIds = {
  ad_request_id: z.guid(),
  ad_response_id: adResponseIdSchema,
  status: z.string(),
  execution_time_ms: z.number(),
};

/** The body of a 200 as the interface describes it. `enhanced_prompt` replaces the user's prompt. */
export const filledInjectionSchema = z.object({
  ...responseIds,
  success: z.literal(true),
  enhanced_prompt: z.string(),
  product_name: z.string(),
});

/** The body of a 201 or 202 as the interface describes it: the user's prompt goes to the model unchanged. */
export const unfilledInjectionSchema = z.object({
  ...responseIds,
  success: z.literal(false),
  enhanced_prompt: z.null(),
  product_name: z.null(),
});

/** The body of a 200, 201 or 202 as the interface describes it, and as our own parts write it. */
export type EnhancementResponse = Readonly<
  z.infer<typeof filledInjectionSchema> | z.infer<typeof unfilledInjectionSchema>
>;

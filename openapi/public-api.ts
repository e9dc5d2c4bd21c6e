/** The document of the gateway's public listener. */
import {
  ACKNOWLEDGE_PATH,
  ACKNOWLEDGMENTS_PATH,
  API_KEY_HEADER,
  acknowledgmentRequestSchema,
  acknowledgmentResponseSchema,
  acknowledgmentStatusSchema,
  type ErrorCode,
  filledInjectionSchema,
  INJECTION_PATH,
  injectionRequestSchema,
  unfilledInjectionSchema,
} from "@adrelay/contract";
import { ENTRY_STATES, FALLBACK_REASONS } from "@adrelay/core";
import { z } from "zod";
import type { ZodOpenApiOperationObject, ZodOpenApiResponseObject } from "zod-openapi";
import { BODY_CODES, EVERY_CODE, EVERY_HEADER, jsonAnswer, jsonRequest, problemAnswers } from "./answers.ts";
import { type ApiDescription, DOCUMENT_TAG } from "./document.ts";
import {
  ACKNOWLEDGMENT_EXAMPLES,
  acknowledgedExamples,
  adResponseLinks,
  ENHANCED_EXAMPLES,
  INJECTION_EXAMPLES,
  unenhancedExamples,
} from "./service-examples.ts";

const SECURITY = [{ PublisherKey: [] }];

/** A service may leave out members that the relay doesn't need, and add others. Both reach the caller. */
const enhanced = z
  .looseObject(
    filledInjectionSchema.partial().required({ ad_response_id: true, enhanced_prompt: true }).shape,
  )
  .meta({
    id: "EnhancedResponse",
    description: "An ad was found: `enhanced_prompt` replaces the user's prompt.",
  });
const unenhanced = z
  .looseObject(unfilledInjectionSchema.partial().shape)
  .meta({ id: "UnenhancedResponse", description: "No ad: the user's prompt goes to the model unchanged." });
const refusal = z
  .looseObject({ code: z.string().optional(), detail: z.string().optional() })
  .meta({ id: "InjectionRefusal", description: "A problem of the relay, or the ad service's own body." });
const acknowledged = acknowledgmentResponseSchema.meta({ id: "AcknowledgmentResponse" });

const stateHeader = z
  .enum(ENTRY_STATES)
  .optional()
  .meta({ description: "The state of the ad response, as the look-up has it." });
const fallbackHeaders = {
  "X-Adrelay-Fallback": z.enum(FALLBACK_REASONS).optional().meta({
    description: "Why the relay itself answers. Absent if the answer is the ad service's.",
  }),
  "X-Adrelay-Fallback-Detail": z.string().optional().meta({
    description: "What is missing or wrong in the ad service's answer, or which limit is reached.",
  }),
};

const ACKNOWLEDGE_CODES = [
  ...EVERY_CODE,
  ...BODY_CODES,
  "unauthenticated",
  "other_publisher",
  "unknown_ad_response",
  "not_acknowledgeable",
  "acknowledgment_conflict",
  "rate_limited",
  "queue_unavailable",
  "overloaded",
  "storage_full",
] as const satisfies readonly ErrorCode[];

/** With INJECTION_FALLBACK=error, an injection can also get what other operations get over a limit. */
const INJECTION_CODES = [
  ...EVERY_CODE,
  ...BODY_CODES,
  "unauthenticated",
  "rate_limited",
  "provider_unavailable",
  "overloaded",
  "provider_timeout",
] as const satisfies readonly ErrorCode[];

const FALLBACK_ERRORS = {
  429: fallbackHeaders,
  502: fallbackHeaders,
  503: fallbackHeaders,
  504: fallbackHeaders,
};

const LOOK_UP_CODES = [
  ...EVERY_CODE,
  "unauthenticated",
  "other_publisher",
  "not_found",
  "unknown_ad_response",
  "validation_failed",
  "rate_limited",
  "queue_unavailable",
  "overloaded",
] as const satisfies readonly ErrorCode[];

export const PUBLIC_API: ApiDescription = {
  title: "Adrelay",
  description:
    "Ask for an ad for a prompt, and acknowledge it once the user was shown the answer. Every path works with and without its last slash. The key is read from the headers that API_KEY_HEADERS names.",
  servers: [{ url: "http://127.0.0.1:8080", description: "npm start" }],
  tags: [
    { name: "Injections", description: "An ad for a prompt." },
    { name: "Acknowledgments", description: "What the user was shown." },
    DOCUMENT_TAG,
  ],
  securitySchemes: {
    PublisherKey: { type: "apiKey", in: "header", name: API_KEY_HEADER, description: "The publisher's key." },
  },
  paths: {
    [INJECTION_PATH]: { post: startInjection() },
    [ACKNOWLEDGE_PATH]: { post: acknowledge() },
    [`${ACKNOWLEDGMENTS_PATH}{ad_response_id}/`]: { get: lookUp() },
  },
};

function startInjection(): ZodOpenApiOperationObject {
  const answers = problemAnswers(INJECTION_CODES, FALLBACK_ERRORS);
  return {
    operationId: "startInjection",
    summary: "Ask for an ad for a prompt",
    description:
      "Answers within its time limit, whatever fails. The gateway demands only a JSON object; what is in it is the ad service's to judge. Never send an injection again: a second one may buy a second ad.",
    tags: ["Injections"],
    security: SECURITY,
    requestParams: {
      header: z.object({
        "X-Adrelay-Timeout-Ms": z.int().min(1).max(30_000).optional().meta({
          description: "Time limit of this injection in milliseconds. Default: INJECTION_TIMEOUT_MS, 2000.",
        }),
      }),
    },
    requestBody: jsonRequest(injectionRequestSchema.meta({ id: "InjectionRequest" }), INJECTION_EXAMPLES),
    responses: {
      ...answers,
      "200": jsonAnswer({
        description: "An ad was found. It must be acknowledged.",
        schema: enhanced,
        headers: {
          "X-Adrelay-Acknowledge-By": z.iso.datetime().optional().meta({
            description: "When it counts as missed. Absent if it could not be recorded in time.",
          }),
        },
        examples: ENHANCED_EXAMPLES,
        links: adResponseLinks("getAcknowledgment"),
      }),
      "201": jsonAnswer({
        description: "The ad service rejected the prompt. There is nothing to acknowledge.",
        schema: unenhanced,
        examples: unenhancedExamples("rejected"),
      }),
      "202": jsonAnswer({
        description: "No ad for this prompt, or a fallback of the relay. There is nothing to acknowledge.",
        schema: unenhanced,
        headers: fallbackHeaders,
        examples: unenhancedExamples("no_fill"),
      }),
      "400": orOfProvider(answers["400"]),
      "409": serviceRefusal(),
      "422": orOfProvider(answers["422"]),
    },
  };
}

type Answer = ReturnType<typeof problemAnswers>["default"];

/** A 400, 409 or 422 of the ad service passes through unchanged, whatever form it has. */
function orOfProvider(answer: Answer): ZodOpenApiResponseObject {
  const own = answer !== undefined && "content" in answer ? answer : undefined;
  return {
    ...serviceRefusal(),
    description: `${own?.description ?? ""} Or the ad service's own refusal, unchanged.`,
  };
}

function serviceRefusal(): ZodOpenApiResponseObject {
  return {
    description: "The ad service's own refusal, unchanged.",
    headers: z.object(EVERY_HEADER),
    content: { "application/problem+json": { schema: refusal }, "application/json": { schema: refusal } },
  };
}

function acknowledge(): ZodOpenApiOperationObject {
  const headers = {
    "X-Adrelay-State": stateHeader,
    "Preference-Applied": z
      .string()
      .optional()
      .meta({ description: "The preference that was followed (RFC 7240)." }),
  };
  return {
    operationId: "acknowledge",
    summary: "Acknowledge an ad response",
    description:
      "Send the text that the user was shown. The same id and text may be sent again at any time; another text gets 409.",
    tags: ["Acknowledgments"],
    security: SECURITY,
    requestParams: {
      header: z.object({
        Prefer: z
          .string()
          .optional()
          .meta({
            description:
              "`wait=SECONDS` (up to 30) or `respond-async` (RFC 7240). Default: ACK_WAIT_MS, 1000 ms.",
            examples: ["wait=5"],
          }),
      }),
    },
    requestBody: jsonRequest(
      acknowledgmentRequestSchema.meta({ id: "AcknowledgmentRequest" }),
      ACKNOWLEDGMENT_EXAMPLES,
    ),
    responses: {
      ...problemAnswers(ACKNOWLEDGE_CODES),
      "200": jsonAnswer({
        description: "Delivered: the ad service has given its verdict.",
        schema: acknowledged,
        headers: {
          ...headers,
          "X-Adrelay-Provider-Ack-Id": z
            .string()
            .optional()
            .meta({ description: "The ad service's own id." }),
        },
        examples: acknowledgedExamples("ok", "no_ad_used"),
      }),
      "201": jsonAnswer({
        description: "Durably accepted, and not delivered yet. There is nothing left to do for the caller.",
        schema: acknowledged,
        headers,
        examples: acknowledgedExamples("recoverable_error"),
      }),
    },
  };
}

function lookUp(): ZodOpenApiOperationObject {
  return {
    operationId: "getAcknowledgment",
    summary: "Look up what became of an ad response",
    tags: ["Acknowledgments"],
    security: SECURITY,
    requestParams: { path: z.object({ ad_response_id: z.guid() }) },
    responses: {
      ...problemAnswers(LOOK_UP_CODES),
      "200": jsonAnswer({
        description: "The ad response and its acknowledgment.",
        schema: acknowledgmentStatusSchema.meta({ id: "AcknowledgmentStatus" }),
        headers: { "X-Adrelay-State": stateHeader },
      }),
    },
  };
}

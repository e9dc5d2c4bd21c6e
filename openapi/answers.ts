/** Answers as the documents describe them: errors of the catalogue, and the headers that answers have. */
import { ERROR_CATALOGUE, type ErrorCode, makeProblem, problemSchema } from "@adrelay/contract";
import { z } from "zod";
import type { ZodOpenApiResponseObject, ZodOpenApiResponsesObject } from "zod-openapi";

const EXAMPLE_REQUEST_ID = "9f2c8a34-6f0e-4d55-9a0b-1c3d5e7f9a2b";

const requestId = z.string().meta({
  description:
    "Names the request in logs: the caller's own X-Request-Id if it was a plain one, else a new id.",
  header: { id: "RequestId" },
  examples: [EXAMPLE_REQUEST_ID],
});
const retryAfter = z
  .string()
  .regex(/^\d+$/)
  .meta({
    description: "Seconds after which the same request may be sent again.",
    header: { id: "RetryAfter" },
  });
const allow = z.string().meta({
  description: "The methods of this address.",
  header: { id: "Allow" },
  examples: ["POST"],
});
const wwwAuthenticate = z.literal("Bearer").meta({ description: "How to authenticate." });

/** The headers that every answer has. */
export const EVERY_HEADER = {
  "X-Request-Id": requestId,
  "Cache-Control": z.string().meta({
    description: "`no-store`, but for the document.",
    header: { id: "CacheControl" },
    examples: ["no-store"],
  }),
  "X-Content-Type-Options": z.literal("nosniff").meta({
    description: "No browser may guess another type.",
    header: { id: "ContentTypeOptions" },
  }),
};

const problem = problemSchema
  .extend({
    quota: z.string().optional().meta({ description: "Of rate_limited: the quota that is used up." }),
    limit: z.union([z.number(), z.string()]).optional().meta({
      description:
        "Of rate_limited: the quota's limit. Of overloaded: which limit of the process is reached.",
    }),
    used: z.number().optional().meta({ description: "Of rate_limited: how much of the quota is used." }),
  })
  .meta({ id: "Problem", description: "An error (RFC 9457). Decide by `code`: codes are never renamed." });

/** What any answer to a request can be that the HTTP server refuses, or for which a fault of ours is to blame. */
export const EVERY_CODE = [
  "bad_request",
  "method_not_allowed",
  "request_timeout",
  "headers_too_large",
  "internal_error",
] as const satisfies readonly ErrorCode[];

/** What any operation with a JSON body can answer besides. */
export const BODY_CODES = [
  "invalid_json",
  "payload_too_large",
  "unsupported_media_type",
  "validation_failed",
] as const satisfies readonly ErrorCode[];

/** Headers of an answer besides those that every answer has. */
type Headers = Readonly<Record<string, z.ZodType>>;

/**
 * One answer for each status of these codes. The codes of a status are an enumeration.
 *
 * @param more further headers of a status
 */
export function problemAnswers(
  codes: readonly ErrorCode[],
  more: Readonly<Record<number, Headers>> = {},
): ZodOpenApiResponsesObject {
  const byStatus = Map.groupBy(new Set(codes), (code) => ERROR_CATALOGUE[code].status);
  // The type of Object.fromEntries has no template for statuses.
  return Object.fromEntries(
    [...byStatus].map(([status, ofStatus]) => [
      String(status),
      problemAnswer(status, ofStatus, more[status]),
    ]),
  ) as ZodOpenApiResponsesObject;
}

function problemAnswer(
  status: number,
  codes: readonly ErrorCode[],
  more: Headers = {},
): ZodOpenApiResponseObject {
  const [first = "internal_error", ...others] = codes;
  const own = z.looseObject({ status: z.literal(status), code: z.enum([first, ...others]) });
  const examples = codes.map((code) => [
    code,
    { summary: ERROR_CATALOGUE[code].title, value: makeProblem(code, EXAMPLE_REQUEST_ID) },
  ]);
  return {
    description: codes.map((code) => `\`${code}\`: ${ERROR_CATALOGUE[code].title}.`).join(" "),
    headers: z.object({ ...EVERY_HEADER, ...headersOf(codes), ...more }),
    content: {
      "application/problem+json": {
        schema: z.intersection(problem, own),
        examples: Object.fromEntries(examples),
      },
    },
  };
}

/** Retry-After is required if each of the codes has it. */
function headersOf(codes: readonly ErrorCode[]) {
  const waits = codes.filter((code) => ERROR_CATALOGUE[code].retryable === "after");
  return {
    ...(waits.length === 0
      ? {}
      : { "Retry-After": waits.length === codes.length ? retryAfter : retryAfter.optional() }),
    ...(codes.includes("method_not_allowed") ? { Allow: allow } : {}),
  };
}

/** Examples of a body, by name. */
export type Examples = Readonly<Record<string, { readonly summary?: string; readonly value: unknown }>>;

/** A JSON body that a request must have. */
export function jsonRequest(schema: z.ZodType, examples?: Examples) {
  return {
    required: true,
    content: { "application/json": { schema, ...(examples === undefined ? {} : { examples }) } },
  };
}

interface JsonAnswer {
  readonly description: string;
  readonly schema: z.ZodType;
  readonly headers?: Headers;
  readonly links?: ZodOpenApiResponseObject["links"];
  readonly examples?: Examples;
}

/** An answer with a JSON body. */
export function jsonAnswer({
  description,
  schema,
  headers = {},
  links,
  examples,
}: JsonAnswer): ZodOpenApiResponseObject {
  return {
    description,
    headers: z.object({ ...EVERY_HEADER, ...headers }),
    content: { "application/json": { schema, ...(examples === undefined ? {} : { examples }) } },
    ...(links === undefined ? {} : { links }),
  };
}

/** What the 401 of a listener has that wants a bearer token. */
export const BEARER_HEADERS = { 401: { "WWW-Authenticate": wwwAuthenticate } };

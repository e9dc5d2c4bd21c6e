/** The document of the ad server's public listener. */
import {
  ACKNOWLEDGE_PATH,
  API_KEY_HEADER,
  acknowledgmentRequestSchema,
  acknowledgmentResponseSchema,
  type ErrorCode,
  filledInjectionSchema,
  INJECTION_PATH,
  injectionRequestSchema,
  unfilledInjectionSchema,
} from "@adrelay/contract";
import { z } from "zod";
import type { ZodOpenApiOperationObject } from "zod-openapi";
import { lookUpAnswerSchema } from "../apps/ad-server/src/routes/acknowledgments.ts";
import {
  budgetsAnswerSchema,
  REPORT_QUERY_FIELDS,
  spendAnswerSchema,
} from "../apps/ad-server/src/routes/reports.ts";
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

const KEY_CODES = [
  ...EVERY_CODE,
  "unauthenticated",
  "key_revoked",
  "storage_unavailable",
] as const satisfies readonly ErrorCode[];
const POST_CODES = [
  ...KEY_CODES,
  ...BODY_CODES,
  "rate_limited",
  "overloaded",
] as const satisfies readonly ErrorCode[];
const SECURITY = [{ PublisherKey: [] }];
const REPORT_SECURITY = [{ PublisherKey: [] }, { ReportKey: [] }];

const reportParams = { query: z.strictObject(REPORT_QUERY_FIELDS) };
const attachment = {
  "Content-Disposition": z.string().meta({ description: "A file name for the report." }),
};

const unenhanced = unfilledInjectionSchema.meta({ id: "UnenhancedResponse" });

export const AD_SERVER_API: ApiDescription = {
  title: "Adrelay's ad server",
  description:
    "An ad service with the documented interface. Every path works with and without its last slash. Its ops listener answers as the gateway's does, without an admin API.",
  servers: [{ url: "http://127.0.0.1:8090", description: "npm start" }],
  tags: [
    { name: "Injections", description: "An ad for a prompt." },
    { name: "Acknowledgments", description: "What the user was shown." },
    { name: "Reports", description: "Spend and budgets." },
    DOCUMENT_TAG,
  ],
  securitySchemes: {
    PublisherKey: { type: "apiKey", in: "header", name: API_KEY_HEADER, description: "A publisher's key." },
    ReportKey: { type: "apiKey", in: "header", name: API_KEY_HEADER, description: "AD_SERVER_REPORT_KEY." },
  },
  paths: {
    [INJECTION_PATH]: { post: startInjection() },
    [ACKNOWLEDGE_PATH]: { post: acknowledge() },
    "/acknowledgments/{ad_response_id}": { get: lookUp() },
    "/reports/spend": { get: spend() },
    "/reports/spend.csv": { get: spendAsCsv() },
    "/reports/budgets": { get: budgets() },
  },
};

function startInjection(): ZodOpenApiOperationObject {
  return {
    operationId: "startInjection",
    summary: "Ask for an ad for a prompt",
    tags: ["Injections"],
    security: SECURITY,
    requestBody: jsonRequest(injectionRequestSchema.meta({ id: "InjectionRequest" }), INJECTION_EXAMPLES),
    responses: {
      ...problemAnswers(POST_CODES),
      "200": jsonAnswer({
        description: "An ad was found. It must be acknowledged.",
        schema: filledInjectionSchema.meta({ id: "EnhancedResponse" }),
        examples: ENHANCED_EXAMPLES,
        links: adResponseLinks("getAcknowledgment"),
      }),
      "201": jsonAnswer({
        description: "No ad is shown for such a prompt.",
        schema: unenhanced,
        examples: unenhancedExamples("rejected"),
      }),
      "202": jsonAnswer({
        description: "No ad fits.",
        schema: unenhanced,
        examples: unenhancedExamples("no_fill"),
      }),
    },
  };
}

function acknowledge(): ZodOpenApiOperationObject {
  return {
    operationId: "acknowledge",
    summary: "Acknowledge an ad response",
    description: "The first acknowledgment counts; each later one gets 409, with what the first one got.",
    tags: ["Acknowledgments"],
    security: SECURITY,
    requestBody: jsonRequest(
      acknowledgmentRequestSchema.meta({ id: "AcknowledgmentRequest" }),
      ACKNOWLEDGMENT_EXAMPLES,
    ),
    responses: {
      ...problemAnswers([
        ...POST_CODES,
        "other_publisher",
        "unknown_ad_response",
        "not_acknowledgeable",
        "already_acknowledged",
      ]),
      "200": jsonAnswer({
        description: "The verdict on the answer.",
        schema: acknowledgmentResponseSchema.meta({ id: "AcknowledgmentResponse" }),
        examples: acknowledgedExamples("ok", "no_ad_used"),
      }),
    },
  };
}

function lookUp(): ZodOpenApiOperationObject {
  return {
    operationId: "getAcknowledgment",
    summary: "Look up an ad response",
    tags: ["Acknowledgments"],
    security: SECURITY,
    requestParams: { path: z.object({ ad_response_id: z.string().min(1) }) },
    responses: {
      ...problemAnswers([...KEY_CODES, "other_publisher", "unknown_ad_response", "not_found"]),
      "200": jsonAnswer({
        description: "The ad response and its acknowledgment.",
        schema: lookUpAnswerSchema.meta({ id: "AcknowledgmentStatus" }),
      }),
    },
  };
}

function spend(): ZodOpenApiOperationObject {
  return {
    operationId: "getSpend",
    summary: "What was requested, shown and spent",
    description:
      "A publisher sees its own numbers, the operator those of all publishers. A report covers at most 92 days.",
    tags: ["Reports"],
    security: REPORT_SECURITY,
    requestParams: reportParams,
    responses: {
      ...problemAnswers([...KEY_CODES, "validation_failed"]),
      "200": {
        description: "The report, as JSON, or as CSV if Accept prefers it.",
        headers: z.object({
          ...EVERY_HEADER,
          Vary: z.string().meta({ description: "The format depends on Accept." }),
          "Content-Disposition": attachment["Content-Disposition"].optional(),
        }),
        content: {
          "application/json": { schema: spendAnswerSchema.meta({ id: "SpendReport" }) },
          "text/csv": { schema: z.string() },
        },
      },
    },
  };
}

function spendAsCsv(): ZodOpenApiOperationObject {
  return {
    operationId: "getSpendAsCsv",
    summary: "The same as CSV",
    tags: ["Reports"],
    security: REPORT_SECURITY,
    requestParams: reportParams,
    responses: {
      ...problemAnswers([...KEY_CODES, "validation_failed"]),
      "200": {
        description: "The report as CSV (RFC 4180), with a header.",
        headers: z.object({ ...EVERY_HEADER, ...attachment }),
        content: { "text/csv": { schema: z.string() } },
      },
    },
  };
}

function budgets(): ZodOpenApiOperationObject {
  return {
    operationId: "getBudgets",
    summary: "What each ad has spent, reserved and left",
    description: "For the operator.",
    tags: ["Reports"],
    security: [{ ReportKey: [] }],
    responses: {
      ...problemAnswers([...EVERY_CODE, "unauthenticated", "storage_unavailable"]),
      "200": jsonAnswer({
        description: "One row for each ad.",
        schema: budgetsAnswerSchema.meta({ id: "Budgets" }),
      }),
    },
  };
}

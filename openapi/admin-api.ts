/** The document of the gateway's ops listener: health, metrics and the admin API. */
import {
  ADMIN_PATH,
  acknowledgmentDetailSchema,
  acknowledgmentPageSchema,
  acknowledgmentStateSchema,
  adoptionSchema,
  auditPageSchema,
  discardListSchema,
  discardViewSchema,
  doctorReportSchema,
  dryRunSchema,
  type ErrorCode,
  erasureSchema,
  publisherIdSchema,
  publishersViewSchema,
  READINESS_PATH,
  readinessSchema,
  replayListSchema,
  replayViewSchema,
  statsSchema,
} from "@adrelay/contract";
import { z } from "zod";
import type {
  ZodOpenApiOperationObject,
  ZodOpenApiParameters,
  ZodOpenApiPathsObject,
  ZodOpenApiResponseObject,
} from "zod-openapi";
import { adoptionFormSchema } from "../apps/gateway/src/admin/adoptions.ts";
import { discardOrderSchema } from "../apps/gateway/src/admin/bulk-discards.ts";
import { replayOrderSchema } from "../apps/gateway/src/admin/bulk-replays.ts";
import { discardSchema } from "../apps/gateway/src/admin/dead-letters.ts";
import { acknowledgmentQuerySchema } from "../apps/gateway/src/admin/entries.ts";
import { erasureFormSchema } from "../apps/gateway/src/admin/erasures.ts";
import { auditQuerySchema } from "../apps/gateway/src/admin/stats.ts";
import {
  BEARER_HEADERS,
  BODY_CODES,
  EVERY_CODE,
  EVERY_HEADER,
  type Examples,
  jsonAnswer,
  jsonRequest,
  problemAnswers,
} from "./answers.ts";
import { type ApiDescription, DOCUMENT_TAG } from "./document.ts";

const OPS_CODES = [...EVERY_CODE, "host_not_allowed"] as const satisfies readonly ErrorCode[];
const ADMIN_CODES = [
  ...OPS_CODES,
  "unauthenticated",
  "forbidden",
  "not_found",
  "too_many_logins",
  "queue_unavailable",
] as const satisfies readonly ErrorCode[];

const idPath = z.object({ ad_response_id: z.guid() });
const replayPath = z.object({ replay_id: z.guid() });
const discardPath = z.object({ discard_id: z.guid() });

const detail = acknowledgmentDetailSchema.meta({ id: "Acknowledgment" });
const state = acknowledgmentStateSchema.meta({ id: "AcknowledgmentState" });
const replay = replayViewSchema.meta({ id: "Replay" });
const discard = discardViewSchema.meta({ id: "Discard" });
const dryRun = dryRunSchema.meta({ id: "DryRun" });

interface Call {
  readonly id: string;
  readonly tag: string;
  readonly summary: string;
  readonly description?: string;
  readonly params?: ZodOpenApiParameters;
  readonly body?: z.ZodType;
  readonly examples?: Examples;
  readonly answer: z.ZodType;
  readonly links?: ZodOpenApiResponseObject["links"];
  /** Other statuses than 200, with the same schema unless one is given. */
  readonly started?: z.ZodType;
  readonly codes?: readonly ErrorCode[];
  /** Codes of all calls that this one never answers. */
  readonly never?: readonly ErrorCode[];
}

/** An operation of the admin API. */
function call({
  id,
  tag,
  summary,
  description,
  params,
  body,
  examples,
  ...rest
}: Call): ZodOpenApiOperationObject {
  const { answer, links, started, codes = [], never = [] } = rest;
  const common = ADMIN_CODES.filter((code) => !never.some((one) => one === code));
  const all = [...common, ...(body === undefined ? [] : BODY_CODES), ...codes];
  const ok = { description: "Done.", schema: answer, ...(links === undefined ? {} : { links }) };
  return {
    operationId: id,
    summary,
    ...(description === undefined ? {} : { description }),
    tags: [tag],
    security: [{ OperatorToken: [] }],
    ...(params === undefined ? {} : { requestParams: params }),
    ...(body === undefined
      ? {}
      : {
          requestBody: jsonRequest(body, examples),
        }),
    responses: {
      ...problemAnswers(all, BEARER_HEADERS),
      "200": jsonAnswer(started === undefined ? ok : { description: "The dry run.", schema: answer }),
      ...(started === undefined
        ? {}
        : { "202": jsonAnswer({ ...ok, description: "Started.", schema: started }) }),
    },
  };
}

/** Any token may make these calls. What it may not see isn't in the answer. */
const FOR_ALL_TOKENS = ["forbidden"] as const satisfies readonly ErrorCode[];

/** A call with an id that may be unknown, or in another form. */
const OF_AN_ID = ["unknown_ad_response", "validation_failed"] as const satisfies readonly ErrorCode[];

const acknowledgmentLinks = {
  show: {
    operationId: "getAcknowledgment",
    parameters: { ad_response_id: "$response.body#/acknowledgments/0/ad_response_id" },
  },
  replay: {
    operationId: "replayDeadLetter",
    parameters: { ad_response_id: "$response.body#/acknowledgments/0/ad_response_id" },
  },
};

/** What can be called with a bulk change that was started. */
const bulkLinks = (name: "Replay" | "Discard") => {
  const parameters = {
    [`${name.toLowerCase()}_id`]: `$response.body#/${name.toLowerCase()}_id`,
  };
  return {
    show: { operationId: `get${name}`, parameters },
    cancel: { operationId: `cancel${name}`, parameters },
  };
};

const ADMIN_CALLS: ZodOpenApiPathsObject = {
  "/stats": {
    get: call({
      id: "getStats",
      tag: "Relay",
      summary: "Counts, queue, providers and processes at one time",
      answer: statsSchema.meta({ id: "Stats" }),
      never: FOR_ALL_TOKENS,
    }),
  },
  "/doctor": {
    get: call({
      id: "runDoctor",
      tag: "Relay",
      summary: "Check Redis, providers, workers and clocks",
      answer: doctorReportSchema.meta({ id: "DoctorReport" }),
      // Without Redis it is a report, too.
      never: ["queue_unavailable"],
    }),
  },
  "/publishers": {
    get: call({
      id: "listPublishers",
      tag: "Publishers",
      summary: "The publishers that are in force, with their keys' ids",
      answer: publishersViewSchema.meta({ id: "Publishers" }),
      never: FOR_ALL_TOKENS,
    }),
  },
  "/publishers/{publisher}/adopt": {
    post: call({
      id: "adoptPublisher",
      tag: "Publishers",
      summary: "Give what a publisher left to another one, in batches",
      description: "Repeat it with `next_cursor` until that is null.",
      params: { path: z.object({ publisher: publisherIdSchema }) },
      body: adoptionFormSchema.meta({ id: "AdoptionRequest" }),
      examples: { first: { value: { to: "acme" } } },
      answer: adoptionSchema.meta({ id: "Adoption" }),
    }),
  },
  "/acknowledgments": {
    get: call({
      id: "listAcknowledgments",
      tag: "Acknowledgments",
      summary: "A page of acknowledgments in one state, newest first",
      params: { query: acknowledgmentQuerySchema },
      answer: acknowledgmentPageSchema.meta({ id: "AcknowledgmentPage" }),
      links: acknowledgmentLinks,
      codes: ["validation_failed"],
    }),
  },
  "/acknowledgments/{ad_response_id}": {
    get: call({
      id: "getAcknowledgment",
      tag: "Acknowledgments",
      summary: "One acknowledgment with its latest attempts",
      params: { path: idPath },
      answer: detail,
      codes: OF_AN_ID,
      never: FOR_ALL_TOKENS,
    }),
  },
  "/acknowledgments/{ad_response_id}/replay": {
    post: call({
      id: "replayDeadLetter",
      tag: "Dead letters",
      summary: "Put one dead letter back on the queue",
      params: { path: idPath },
      answer: state,
      codes: [...OF_AN_ID, "not_dead"],
    }),
  },
  "/acknowledgments/{ad_response_id}/discard": {
    post: call({
      id: "discardAcknowledgment",
      tag: "Dead letters",
      summary: "End one dead letter or queued acknowledgment for good",
      params: { path: idPath },
      body: discardSchema.meta({ id: "DiscardReason" }),
      examples: { reason: { value: { reason: "The campaign was withdrawn." } } },
      answer: state,
      codes: [...OF_AN_ID, "not_dead", "attempt_under_way"],
    }),
  },
  "/replays": {
    get: call({
      id: "listReplays",
      tag: "Dead letters",
      summary: "The latest bulk replays",
      answer: replayListSchema.meta({ id: "ReplayList" }),
      never: FOR_ALL_TOKENS,
    }),
    post: call({
      id: "startReplay",
      tag: "Dead letters",
      summary: "Put all dead letters of a filter back on the queue",
      body: replayOrderSchema.meta({ id: "ReplayRequest" }),
      examples: {
        dryRun: { summary: "How many would it be?", value: { reason: "exhausted", dry_run: true } },
        start: { value: { reason: "exhausted", rate_per_second: 100 } },
      },
      answer: dryRun,
      started: replay,
      links: bulkLinks("Replay"),
    }),
  },
  "/replays/{replay_id}": {
    get: call({
      id: "getReplay",
      tag: "Dead letters",
      summary: "The progress of one bulk replay",
      params: { path: replayPath },
      answer: replay,
      codes: ["unknown_replay"],
      never: FOR_ALL_TOKENS,
    }),
  },
  "/replays/{replay_id}/cancel": {
    post: call({
      id: "cancelReplay",
      tag: "Dead letters",
      summary: "Cancel one bulk replay",
      params: { path: replayPath },
      answer: replay,
      codes: ["unknown_replay", "replay_ended"],
    }),
  },
  "/discards": {
    get: call({
      id: "listDiscards",
      tag: "Dead letters",
      summary: "The latest bulk discards",
      answer: discardListSchema.meta({ id: "DiscardList" }),
      never: FOR_ALL_TOKENS,
    }),
    post: call({
      id: "startDiscard",
      tag: "Dead letters",
      summary: "End all dead letters of a filter for good",
      description: "`why` may be missing only in a dry run.",
      body: discardOrderSchema.meta({ id: "DiscardRequest" }),
      examples: {
        dryRun: { summary: "How many would it be?", value: { reason: "exhausted", dry_run: true } },
        start: { value: { reason: "exhausted", why: "The campaign was withdrawn." } },
      },
      answer: dryRun,
      started: discard,
      links: bulkLinks("Discard"),
    }),
  },
  "/discards/{discard_id}": {
    get: call({
      id: "getDiscard",
      tag: "Dead letters",
      summary: "The progress of one bulk discard",
      params: { path: discardPath },
      answer: discard,
      codes: ["unknown_discard"],
      never: FOR_ALL_TOKENS,
    }),
  },
  "/discards/{discard_id}/cancel": {
    post: call({
      id: "cancelDiscard",
      tag: "Dead letters",
      summary: "Cancel one bulk discard",
      params: { path: discardPath },
      answer: discard,
      codes: ["unknown_discard", "discard_ended"],
    }),
  },
  "/erasures": {
    post: call({
      id: "erase",
      tag: "Privacy",
      summary: "Erase what a user wrote, of one ad response or of a session",
      description: "A session is searched for in steps: repeat it with `next_cursor` until that is null.",
      body: erasureFormSchema.meta({ id: "ErasureRequest" }),
      examples: {
        session: { value: { session_id: "s-1", reason: "Request of the user" } },
        adResponse: {
          value: { ad_response_id: "0b7a52c9-9c0e-4f6e-8d0a-2f6f3f0c7d11", reason: "Request of the user" },
        },
      },
      answer: erasureSchema.meta({ id: "Erasure" }),
      codes: ["unknown_ad_response"],
    }),
  },
  "/audit": {
    get: call({
      id: "listAudit",
      tag: "Relay",
      summary: "Who did what, newest first",
      params: { query: auditQuerySchema },
      answer: auditPageSchema.meta({ id: "AuditPage" }),
      codes: ["validation_failed"],
      never: FOR_ALL_TOKENS,
    }),
  },
};

const readiness = readinessSchema.meta({ id: "Readiness" });

const OPS_PATHS: ZodOpenApiPathsObject = {
  "/healthz": {
    get: {
      operationId: "getHealth",
      summary: "Whether the process runs",
      tags: ["Process"],
      security: [],
      responses: {
        ...problemAnswers(OPS_CODES),
        "200": jsonAnswer({ description: "It runs.", schema: z.object({ status: z.literal("ok") }) }),
      },
    },
  },
  [READINESS_PATH]: {
    get: {
      operationId: "getReadiness",
      summary: "Whether the process can do its work",
      tags: ["Process"],
      security: [],
      responses: {
        ...problemAnswers(OPS_CODES),
        "200": jsonAnswer({ description: "It can.", schema: readiness }),
        "503": jsonAnswer({ description: "It can't, or it stops.", schema: readiness }),
      },
    },
  },
  "/metrics": {
    get: {
      operationId: "getMetrics",
      summary: "Metrics for Prometheus",
      description: "It needs a token if METRICS_TOKEN is set.",
      tags: ["Process"],
      security: [{}, { MetricsToken: [] }],
      responses: {
        ...problemAnswers([...OPS_CODES, "unauthenticated", "too_many_logins"], BEARER_HEADERS),
        "200": {
          description: "The metrics, in the format that Accept prefers.",
          headers: z.object({ ...EVERY_HEADER, Vary: z.string() }),
          content: {
            "text/plain": { schema: z.string() },
            "application/openmetrics-text": { schema: z.string() },
          },
        },
      },
    },
  },
};

export const ADMIN_API: ApiDescription = {
  title: "Adrelay for operators",
  description:
    "The gateway's ops listener. Workers and ad servers answer `/healthz`, `/readyz` and `/metrics` on their own ops listeners in the same way. Times are ISO 8601 in UTC by Redis' clock. A newer gateway may send further members.",
  servers: [{ url: "http://127.0.0.1:8081", description: "npm start" }],
  tags: [
    { name: "Relay", description: "The whole relay, and what operators did." },
    { name: "Acknowledgments", description: "One by one, or a page of them." },
    { name: "Dead letters", description: "Replay or discard what could not be delivered." },
    { name: "Publishers", description: "Who sends acknowledgments." },
    { name: "Privacy", description: "Erase what users wrote." },
    { name: "Process", description: "Health and metrics of this process." },
    DOCUMENT_TAG,
  ],
  securitySchemes: {
    OperatorToken: {
      type: "http",
      scheme: "bearer",
      description: "ADMIN_TOKEN, or a token of OPERATORS_FILE.",
    },
    MetricsToken: { type: "http", scheme: "bearer", description: "METRICS_TOKEN." },
  },
  paths: {
    ...OPS_PATHS,
    ...Object.fromEntries(Object.entries(ADMIN_CALLS).map(([path, item]) => [ADMIN_PATH + path, item])),
  },
};

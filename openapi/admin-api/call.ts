/** How an operation of the admin API is described. */
import type { ErrorCode } from "@adrelay/contract";
import type { z } from "zod";
import type { ZodOpenApiOperationObject, ZodOpenApiParameters, ZodOpenApiResponseObject } from "zod-openapi";
import {
  BEARER_HEADERS,
  BODY_CODES,
  EVERY_CODE,
  type Examples,
  jsonAnswer,
  jsonRequest,
  problemAnswers,
} from "../answers.ts";

/** Codes of every path of the ops listener. */
export const OPS_CODES = [...EVERY_CODE, "host_not_allowed"] as const satisfies readonly ErrorCode[];
const ADMIN_CODES = [
  ...OPS_CODES,
  "unauthenticated",
  "forbidden",
  "not_found",
  "too_many_logins",
  "queue_unavailable",
] as const satisfies readonly ErrorCode[];

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
export function call({
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
export const FOR_ALL_TOKENS = ["forbidden"] as const satisfies readonly ErrorCode[];

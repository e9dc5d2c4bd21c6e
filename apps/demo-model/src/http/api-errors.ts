/** Errors in the form of the provider whose interface was called. */
import type { IncomingHttpHeaders } from "node:http";
import { makeId } from "../dialects/dialect.ts";

export type Api = "openai" | "anthropic";

/** Which provider's client calls: paths of Anthropic's interface are its own, and its clients send their version. */
export function apiOf(path: string, headers: IncomingHttpHeaders): Api {
  return path.startsWith("/v1/messages") || headers["anthropic-version"] !== undefined
    ? "anthropic"
    : "openai";
}

export interface ApiError {
  readonly status: number;
  readonly message: string;
  /** The member of the body that is wrong. */
  readonly param?: string;
  readonly headers?: Record<string, string>;
}

export function formatError(api: Api, { status, message, param }: ApiError): object {
  switch (api) {
    case "openai":
      return { error: { message, type: openAiType(status), param: param ?? null, code: openAiCode(status) } };
    case "anthropic":
      return { type: "error", error: { type: anthropicType(status), message }, request_id: makeId("req_") };
    default:
      return api satisfies never;
  }
}

function openAiType(status: number): string {
  if (status === 429) {
    return "requests";
  }
  return status >= 500 ? "server_error" : "invalid_request_error";
}

function openAiCode(status: number): string | null {
  switch (status) {
    case 401:
      return "invalid_api_key";
    case 429:
      return "rate_limit_exceeded";
    default:
      return null;
  }
}

const ANTHROPIC_TYPES: Readonly<Record<number, string>> = {
  401: "authentication_error",
  403: "permission_error",
  404: "not_found_error",
  413: "request_too_large",
  429: "rate_limit_error",
  529: "overloaded_error",
};

function anthropicType(status: number): string {
  return ANTHROPIC_TYPES[status] ?? (status >= 500 ? "api_error" : "invalid_request_error");
}

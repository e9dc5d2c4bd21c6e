/** The proxy's own errors in the forms that the official clients understand. */
import type { ErrorBody } from "./dialect.ts";

export function formatOpenAiError({ status, code, message }: ErrorBody): string {
  const type = status < 500 ? "invalid_request_error" : "server_error";
  return JSON.stringify({ error: { message, type, param: null, code } });
}

export function formatAnthropicError({ status, message, requestId }: ErrorBody): string {
  const error = { type: anthropicType(status), message };
  return JSON.stringify({ type: "error", error, request_id: requestId });
}

function anthropicType(status: ErrorBody["status"]): string {
  switch (status) {
    case 401:
      return "authentication_error";
    case 408:
      return "invalid_request_error";
    case 413:
      return "request_too_large";
    case 503:
      return "overloaded_error";
    case 504:
      return "timeout_error";
    case 501:
    case 502:
      return "api_error";
    default:
      return status satisfies never;
  }
}

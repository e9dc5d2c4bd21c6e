/**
 * Where a call goes. Only its path and the header `anthropic-version` decide: no URL of a caller's is ever called. What
 * follows the base URL's path goes upstream as it came, query included.
 */
import type { IncomingMessage } from "node:http";
import type { Dialect } from "../dialects/dialect.ts";
import { dialectNamed, dialectOf } from "../dialects/index.ts";

/** Whose base URL a call goes to. */
export type UpstreamName = "openai" | "anthropic";

/** What the path of a call is, in logs and metrics: a surface by its dialect's name, or one that only passes through. */
export type PathClass = Dialect["name"] | "other";

/** Where a call goes. */
export interface Target {
  readonly upstream: UpstreamName;
  /** Path and query behind the base URL of that upstream. */
  readonly path: string;
  /** Undefined if the call only passes through. */
  readonly surface: Dialect | undefined;
  /** In whose form errors of the proxy are. */
  readonly errorsOf: Dialect;
}

const PREFIX = "/v1";
/** A scheme and a host before the path, as proxies send it (RFC 9112, section 3.2.2). */
const ORIGIN = /^https?:\/\/[^/?#]*/i;
/** `.` and `..` as segments, also escaped or between escaped slashes: some servers resolve them, and leave the base URL. */
const DOT_SEGMENT = /(?:[/\\]|%2f|%5c)(?:\.|%2e){1,2}(?:[/\\;]|%2f|%5c|%3b|$)/i;

/** Undefined if nothing is served at this address. */
export function targetOf({ url = "", method, headers }: IncomingMessage): Target | undefined {
  const target = url.startsWith("/") ? url : url.replace(ORIGIN, "");
  const queryAt = target.indexOf("?");
  const path = queryAt === -1 ? target : target.slice(0, queryAt);
  if (!path.startsWith(`${PREFIX}/`) || DOT_SEGMENT.test(path) || target.includes("#")) {
    return undefined;
  }
  const surface = method === "POST" ? dialectOf(path) : undefined;
  const isAnthropic =
    path === "/v1/messages" || path.startsWith("/v1/messages/") || headers["anthropic-version"] !== undefined;
  return {
    upstream: isAnthropic ? "anthropic" : "openai",
    // OpenAI's base URLs end with /v1, Anthropic's don't.
    path: isAnthropic ? target : target.slice(PREFIX.length),
    surface,
    errorsOf: surface ?? dialectNamed(isAnthropic ? "messages" : "chat_completions"),
  };
}

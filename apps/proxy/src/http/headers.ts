/** Which headers go from one side to the other. Their order, case and repetitions stay. */
import type { AdOutcome } from "./call.ts";

/** What is only for the next hop (RFC 9110, section 7.6.1), and what HTTP's framing says anew on each side. */
const HOP_BY_HOP = [
  "connection",
  "keep-alive",
  "proxy-connection",
  "proxy-authenticate",
  "proxy-authorization",
  "te",
  "trailer",
  "transfer-encoding",
  "upgrade",
  "http2-settings",
] as const;

const NOT_UPSTREAM: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "host",
  "content-length",
  "expect",
  // Replaced: see upstreamHeaders.
  "accept-encoding",
]);
const NOT_BACK: ReadonlySet<string> = new Set(HOP_BY_HOP);
/** A stream is never kept, changed or collected on its way. */
const NOT_BACK_ON_STREAMS: ReadonlySet<string> = new Set([
  ...HOP_BY_HOP,
  "cache-control",
  "x-accel-buffering",
]);

/** Headers with this prefix are between the relay and its callers. */
const OWN_PREFIX = "x-adrelay-";

const AD_HEADER = "X-Adrelay-Ad";
/** Which headers of the call the reason is about. */
const AD_DETAIL_HEADER = "X-Adrelay-Ad-Detail";
const AD_RESPONSE_ID_HEADER = "X-Adrelay-Ad-Response-Id";

/**
 * The headers of a request upstream. The model's server is asked for a plain answer, so that its text can be read.
 *
 * @param keyHeaders names of the headers with a publisher's key, in lower case
 */
export function upstreamHeaders(raw: readonly string[], keyHeaders: ReadonlySet<string>): string[] {
  const named = namedIn(valuesOf(raw, "connection"));
  const headers: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? "";
    const key = name.toLowerCase();
    if (!(NOT_UPSTREAM.has(key) || keyHeaders.has(key) || key.startsWith(OWN_PREFIX) || named.has(key))) {
      headers.push(name, raw[at + 1] ?? "");
    }
  }
  headers.push("Accept-Encoding", "identity");
  return headers;
}

/** The headers of an answer, with what the caller learns about its ad. */
export function answerHeaders(
  raw: readonly string[],
  {
    isStream,
    ad,
    adResponseId,
  }: { isStream: boolean; ad: AdOutcome | undefined; adResponseId: string | undefined },
): string[] {
  const dropped = isStream ? NOT_BACK_ON_STREAMS : NOT_BACK;
  const named = namedIn(valuesOf(raw, "connection"));
  const headers: string[] = [];
  for (let at = 0; at + 1 < raw.length; at += 2) {
    const name = raw[at] ?? "";
    const key = name.toLowerCase();
    if (!(dropped.has(key) || key.startsWith(OWN_PREFIX) || named.has(key))) {
      headers.push(name, raw[at + 1] ?? "");
    }
  }
  if (isStream) {
    headers.push("Cache-Control", "no-cache, no-transform", "X-Accel-Buffering", "no");
  }
  headers.push(...adHeaders(ad, adResponseId));
  return headers;
}

/** What the caller learns about the ad of its call. */
export function adHeaders(ad: AdOutcome | undefined, adResponseId: string | undefined): string[] {
  return [
    ...(ad === undefined ? [] : [AD_HEADER, formatAd(ad)]),
    ...(ad?.detail === undefined ? [] : [AD_DETAIL_HEADER, ad.detail]),
    ...(adResponseId === undefined ? [] : [AD_RESPONSE_ID_HEADER, adResponseId]),
  ];
}

/** The headers of an answer as undici has received them, as text. */
export function textsOf(raw: unknown): string[] {
  return Array.isArray(raw)
    ? raw.map((part) => (Buffer.isBuffer(part) ? part.toString("latin1") : String(part)))
    : [];
}

function formatAd({ state, reason }: AdOutcome): string {
  return reason === undefined ? state : `${state}; reason=${reason}`;
}

const NONE: ReadonlySet<string> = new Set();

/** The headers that Connection names: they are for this hop, too. */
function namedIn(connection: string): ReadonlySet<string> {
  if (connection === "" || connection === "keep-alive" || connection === "close") {
    return NONE;
  }
  const names = connection.toLowerCase().split(",");
  return new Set(names.map((name) => name.trim()));
}

function valuesOf(raw: readonly string[], name: string): string {
  let values = "";
  for (let at = 0; at + 1 < raw.length; at += 2) {
    if (raw[at]?.length === name.length && raw[at]?.toLowerCase() === name) {
      values += values === "" ? (raw[at + 1] ?? "") : `,${raw[at + 1]}`;
    }
  }
  return values;
}

/** A reason phrase that HTTP allows, else Node's own one. */
export function plainMessage(message: string | undefined): string | undefined {
  return message !== undefined && /^[\t\x20-\x7e]+$/.test(message) ? message : undefined;
}

/** Names and values in turn, as pairs. */
export function pairsOf(flat: readonly string[]): [string, string][] {
  const pairs: [string, string][] = [];
  for (let at = 0; at + 1 < flat.length; at += 2) {
    pairs.push([flat[at] ?? "", flat[at + 1] ?? ""]);
  }
  return pairs;
}

/**
 * Ids, paths and header names of the service, W3C Trace Context, and the rules for addresses and keys in settings.
 */
import { z } from "zod";

/** Paths of the ad service's two operations and of the gateway's lookup. Each is also served without its last slash. */
export const INJECTION_PATH = "/api/ad-injection/start/";
/** See {@link INJECTION_PATH}. */
export const ACKNOWLEDGE_PATH = "/api/ad-injection/acknowledge/";
/** The gateway's lookup of one acknowledgment; the ad_response_id follows. See {@link INJECTION_PATH}. */
export const ACKNOWLEDGMENTS_PATH = "/api/ad-injection/acknowledgments/";

/** Default header of the publisher's key towards the gateway, and of our key towards a provider. */
export const API_KEY_HEADER = "X-Service-API-Key";
/** Carries the id that the logs name a request by; every answer has it. */
export const REQUEST_ID_HEADER = "X-Request-Id";
/** Carries `ad_ack_id`: the same in each attempt of one acknowledgment, so that a provider can ignore repeats. */
export const IDEMPOTENCY_KEY_HEADER = "Idempotency-Key";

/**
 * Ids of the service are UUIDs of any version. The schemas turn them into lower case, so that one response has
 * one id however a caller spells it (RFC 9562, section 4).
 */
const uuid = (name: string) =>
  z.guid({ error: `${name} must be a UUID` }).transform((id) => id.toLowerCase());

/** The provider's id of an ad response. Parsing turns it into lower case. */
export const adResponseIdSchema = uuid("ad_response_id").brand<"AdResponseId">();
/** A parsed ad_response_id: a UUID in lower case. */
export type AdResponseId = z.infer<typeof adResponseIdSchema>;

/** The id of an acknowledgment. Parsing turns it into lower case. */
export const adAckIdSchema = uuid("ad_ack_id").brand<"AdAckId">();
/** A parsed ad_ack_id: a UUID in lower case. */
export type AdAckId = z.infer<typeof adAckIdSchema>;

const LOWER_CASE_UUID = /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Whether a value is a UUID in lower case, which the id schemas would return unchanged. */
export function isLowerCaseUuid(value: unknown): value is string {
  return typeof value === "string" && LOWER_CASE_UUID.test(value);
}

/** Formats 32 hex digits as a UUID. The caller checks the length. */
export function uuidOfHex(hex: string): string {
  return `${hex.slice(0, 8)}-${hex.slice(8, 12)}-${hex.slice(12, 16)}-${hex.slice(16, 20)}-${hex.slice(20)}`;
}

const PUBLISHER_ID = /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/;

/** The id of a publisher. It is short and plain because metric labels and Redis keys contain it. */
export const publisherIdSchema = z
  .string()
  .regex(PUBLISHER_ID, "must be 1 to 64 letters, digits, _ or -")
  .brand<"PublisherId">();
/** A checked publisher id. */
export type PublisherId = z.infer<typeof publisherIdSchema>;

/** Whether `publisherIdSchema` would accept the value. */
export function isPublisherId(value: unknown): value is PublisherId {
  return typeof value === "string" && PUBLISHER_ID.test(value);
}

/** The name of a header (RFC 9110, section 5.6.2). */
export const headerNameSchema = z
  .string()
  .regex(/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/, "must be the name of a header");

/** Whether a text has quotes around it. A secret has them if a program took those of a file for a part of it. */
export function isQuoted(text: string): boolean {
  return /^(["'`]).*\1$/s.test(text) && text.length > 1;
}

/** A key that can be sent in a header. This refuses, for example, a line break within it, and quotes around it. */
export const headerKeySchema = z
  .string()
  .regex(/^[\x21-\x7e]+$/, "must be printable ASCII without blanks")
  .refine((key) => !isQuoted(key), "must not be in quotes: write it without them");

/** A shorter key or token that Adrelay itself checks can be guessed. */
const OWN_KEY_CHARS_MIN = 16;

/** Anybody can read these in a version of Adrelay, so they protect nothing. */
const PUBLISHED_KEYS = ["demo-key", "demo-caller-key", "demo-provider-key", "demo-admin-token"];

/** Why a key or token is too weak to be checked by Adrelay; undefined if it isn't. It repeats nothing of the key. */
function weaknessOf(key: string): string | undefined {
  if (PUBLISHED_KEYS.includes(key)) {
    return "must not be a key of Adrelay's examples, which everybody knows";
  }
  return key.length < OWN_KEY_CHARS_MIN
    ? `must have at least ${OWN_KEY_CHARS_MIN} characters, for example from: openssl rand -hex 16`
    : undefined;
}

/** A text that isn't too weak to be a key or token. */
export const strongTextSchema = z.string().superRefine((key, context) => {
  const message = weaknessOf(key);
  if (message !== undefined) {
    context.addIssue({ code: "custom", message });
  }
});

/** A key that Adrelay itself checks. Keys at other services are chosen by those, and may be shorter. */
export const ownKeySchema = headerKeySchema.pipe(strongTextSchema);

/** What a URL must have whose user or password has characters that mean something else there. */
export const URL_USER_FAULT =
  "must have user and password in percent-encoding (% is %25, # is %23, / is %2F, ? is %3F, @ is %40)";

/**
 * The fault of a text that isn't a URL of these schemes. A `/`, `#` or `?` in a password ends the host before it, so that the
 * URL can't be parsed: what follows the colon isn't a port.
 */
export function urlFault(schemes: RegExp, fault: string): (issue: { readonly input?: unknown }) => string {
  return ({ input }) => {
    const text = String(input);
    const isOfScheme = schemes.test(/^([a-z]+):\/\//i.exec(text)?.[1]?.toLowerCase() ?? "");
    return isOfScheme && text.includes("@") ? URL_USER_FAULT : fault;
  };
}

const HTTP = /^https?$/;

/** The base URL of a service: paths are appended to it, so it can't have a query or a fragment. */
export const baseUrlSchema = z
  .url({ protocol: HTTP, error: urlFault(HTTP, "must be an http:// or https:// URL"), abort: true })
  .refine((url) => !/[?#].*@/.test(url), { error: URL_USER_FAULT, abort: true })
  .refine((url) => !/[?#]/.test(url), "must have neither query nor fragment")
  .refine(hasReadableUser, URL_USER_FAULT);

function hasReadableUser(url: string): boolean {
  try {
    const { username, password } = new URL(url);
    decodeURIComponent(username + password);
    return true;
  } catch {
    return false;
  }
}

/** Header with the ids of the trace and of the calling span. */
export const TRACEPARENT_HEADER = "traceparent";
/** Header with data that tracing vendors add to a trace. */
export const TRACESTATE_HEADER = "tracestate";

/** All-zero ids are invalid, and so is version ff. Later versions may append fields after the flags. */
const TRACEPARENT =
  /^(?!ff)([0-9a-f]{2})-((?!0{32})[0-9a-f]{32})-((?!0{16})[0-9a-f]{16})-([0-9a-f]{2})(-[\x21-\x7e]{1,100})?$/;

/** A tracestate that we pass on. We drop a longer one, and one with characters that no header can carry. */
const TRACESTATE = /^[\x20-\x7e]{1,512}$/;

/** The position of a request in a distributed trace: the trace, and the span that the request is part of. */
export interface TraceContext {
  readonly traceId: string;
  readonly spanId: string;
  /** Whether the service that began the trace records it. */
  readonly isSampled: boolean;
  /** The `tracestate` header; absent if there was none, or if we dropped it. */
  readonly state?: string;
}

/** Parses both headers; undefined if the traceparent is missing or invalid. */
export function parseTraceContext(
  traceparent: string | undefined,
  tracestate?: string,
): TraceContext | undefined {
  const [, version, traceId, spanId, flags = "", rest] = TRACEPARENT.exec(traceparent ?? "") ?? [];
  if (traceId === undefined || spanId === undefined || (version === "00" && rest !== undefined)) {
    return undefined;
  }
  const isSampled = (Number.parseInt(flags, 16) & 1) === 1;
  const hasState = tracestate !== undefined && TRACESTATE.test(tracestate);
  return { traceId, spanId, isSampled, ...(hasState ? { state: tracestate } : {}) };
}

/** Formats a traceparent of version 00, without the tracestate. */
export function formatTraceparent({ traceId, spanId, isSampled }: TraceContext): string {
  return `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`;
}

/** The headers that pass a trace on; none if there is no trace. */
export function traceHeadersOf(context: TraceContext | undefined): Record<string, string> {
  if (context === undefined) {
    return {};
  }
  return {
    [TRACEPARENT_HEADER]: formatTraceparent(context),
    ...(context.state === undefined ? {} : { [TRACESTATE_HEADER]: context.state }),
  };
}

/** The traceparent in a delivery job. An invalid one counts as absent: it must not make the job unreadable. */
export const jobTraceparentSchema = z
  .string()
  .refine((text) => parseTraceContext(text) !== undefined)
  .optional()
  .catch(undefined);

/** What the ad service is asked: the user's text, and what the headers of a model call say about the end user. */

/** Reads a header of the call. Names are in lower case. */
export type ReadHeader = (name: string) => string | undefined;

/** The end user, as far as the headers tell. */
export interface UserContext {
  readonly sessionId: string;
  readonly userAgent: string;
  readonly userIp: string;
  readonly wrappingType: string | undefined;
  /** Members of `optional_context`. */
  readonly optional: Readonly<Record<string, string | number>>;
}

/** Without one of them no ad is asked for. */
const REQUIRED_HEADERS = {
  session_id: "X-Adrelay-Session-Id",
  user_agent: "X-Adrelay-User-Agent",
  user_ip: "X-Adrelay-User-IP",
} as const;

const OPTIONAL_HEADERS = {
  country: "X-Adrelay-Country",
  region: "X-Adrelay-Region",
  city: "X-Adrelay-City",
  asn: "X-Adrelay-ASN",
  age: "X-Adrelay-Age",
  gender: "X-Adrelay-Gender",
} as const;

const WRAPPING_TYPE_HEADER = "X-Adrelay-Wrapping-Type";

const HEADERS_OF_MEMBERS: ReadonlyMap<string, string> = new Map([
  ...Object.entries(REQUIRED_HEADERS).map(([name, header]) => [`request_context.${name}`, header] as const),
  ...Object.entries(OPTIONAL_HEADERS).map(([name, header]) => [`optional_context.${name}`, header] as const),
  ["request_configuration.wrapping_type", WRAPPING_TYPE_HEADER],
]);

/** The header that a member of the injection's body came from, by its path, which may begin with `body.`. */
export function headerOfMember(path: string): string | undefined {
  return HEADERS_OF_MEMBERS.get(path.replace(/^body\./, ""));
}

/** Members that are numbers in the ad service's interface. */
const NUMBERS: ReadonlySet<string> = new Set(["asn", "age"]);

export type ReadContext =
  | { readonly kind: "read"; readonly context: UserContext }
  | { readonly kind: "missing"; readonly headers: readonly string[] };

/** Reads the context, or names the headers that are missing without which no ad is asked for. */
export function readUserContext(header: ReadHeader): ReadContext {
  const sessionId = readText(header, REQUIRED_HEADERS.session_id);
  const userAgent = readText(header, REQUIRED_HEADERS.user_agent);
  const userIp = readText(header, REQUIRED_HEADERS.user_ip);
  if (sessionId === undefined || userAgent === undefined || userIp === undefined) {
    const names = Object.values(REQUIRED_HEADERS);
    return { kind: "missing", headers: names.filter((name) => readText(header, name) === undefined) };
  }
  const optional: Record<string, string | number> = {};
  for (const [name, headerName] of Object.entries(OPTIONAL_HEADERS)) {
    const text = readText(header, headerName);
    if (text !== undefined) {
      optional[name] = NUMBERS.has(name) && /^\d{1,10}$/.test(text) ? Number(text) : text;
    }
  }
  const wrappingType = readText(header, WRAPPING_TYPE_HEADER);
  return { kind: "read", context: { sessionId, userAgent, userIp, wrappingType, optional } };
}

/** The body of the injection. */
export function injectionBody(prompt: string, context: UserContext): Buffer {
  const { sessionId, userAgent, userIp, wrappingType, optional } = context;
  return Buffer.from(
    JSON.stringify({
      prompt,
      request_context: { session_id: sessionId, user_agent: userAgent, user_ip: userIp },
      ...(wrappingType === undefined ? {} : { request_configuration: { wrapping_type: wrappingType } }),
      ...(Object.keys(optional).length === 0 ? {} : { optional_context: optional }),
    }),
  );
}

function readText(header: ReadHeader, name: string): string | undefined {
  const text = header(name.toLowerCase())?.trim();
  return text === undefined || text === "" ? undefined : decodeUtf8(text);
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/** Node reads each byte of a header as one character. Names of cities are often sent as UTF-8. */
function decodeUtf8(text: string): string {
  if (!/[\u0080-\u00ff]/.test(text)) {
    return text;
  }
  try {
    return utf8.decode(Buffer.from(text, "latin1"));
  } catch {
    return text;
  }
}

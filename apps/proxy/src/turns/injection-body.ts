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

const OPTIONAL_HEADERS = {
  country: "x-adrelay-country",
  region: "x-adrelay-region",
  city: "x-adrelay-city",
  asn: "x-adrelay-asn",
  age: "x-adrelay-age",
  gender: "x-adrelay-gender",
} as const;

/** Members that are numbers in the ad service's interface. */
const NUMBERS: ReadonlySet<string> = new Set(["asn", "age"]);

/** Reads the context; undefined if one of the three headers is missing without which no ad is asked for. */
export function readUserContext(header: ReadHeader): UserContext | undefined {
  const sessionId = readText(header, "x-adrelay-session-id");
  const userAgent = readText(header, "x-adrelay-user-agent");
  const userIp = readText(header, "x-adrelay-user-ip");
  if (sessionId === undefined || userAgent === undefined || userIp === undefined) {
    return undefined;
  }
  const optional: Record<string, string | number> = {};
  for (const [name, headerName] of Object.entries(OPTIONAL_HEADERS)) {
    const text = readText(header, headerName);
    if (text !== undefined) {
      optional[name] = NUMBERS.has(name) && /^\d{1,10}$/.test(text) ? Number(text) : text;
    }
  }
  const wrappingType = readText(header, "x-adrelay-wrapping-type");
  return { sessionId, userAgent, userIp, wrappingType, optional };
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
  const text = header(name)?.trim();
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

/**
 * What goes over the wire, as the relay's public API describes it. Tests compare this file with packages/contract: the
 * client is published alone and imports nothing.
 */

export const INJECTION_PATH = "/api/ad-injection/start/";
export const ACKNOWLEDGE_PATH = "/api/ad-injection/acknowledge/";
export const API_KEY_HEADER = "X-Service-API-Key";

/** The end user's attributes. Leave out what you don't know, or set it to null. */
export interface UserAttributes {
  /** A code of two letters (ISO 3166-1), such as `US`. */
  readonly country?: string | null | undefined;
  readonly region?: string | null | undefined;
  readonly city?: string | null | undefined;
  readonly asn?: number | null | undefined;
  /** Whole years. */
  readonly age?: number | null | undefined;
  readonly gender?: "male" | "female" | "other" | null | undefined;
}

/** Where the prompt comes from: the end user's session, browser and address, not those of your backend. */
export interface RequestContext {
  readonly session_id: string;
  readonly user_agent?: string | null | undefined;
  readonly user_ip?: string | null | undefined;
}

/** The body of an injection. Its member names are those of the wire. */
export interface InjectionRequest {
  /** The user's message. It comes back unchanged if there is no ad. */
  readonly prompt: string;
  readonly request_context: RequestContext;
  readonly request_configuration?:
    | { readonly wrapping_type?: "xml" | "plain" | "markdown" | undefined }
    | null
    | undefined;
  readonly optional_context?: UserAttributes | null | undefined;
}

/** What an injection says beside the user's message. */
export type AdContext = Omit<InjectionRequest, "prompt">;

/** How an accepted acknowledgment stands. `recoverable_error`: the relay has it and will deliver it. */
export type AcknowledgmentStatus = "ok" | "no_ad_used" | "recoverable_error";

const STATUSES = ["ok", "no_ad_used", "recoverable_error"] as const satisfies AcknowledgmentStatus[];

/** The body of a 200 to an injection; undefined if it isn't one. */
export function parseFilled(
  body: unknown,
):
  | { readonly adResponseId: string; readonly prompt: string; readonly productName: string | undefined }
  | undefined {
  const { ad_response_id: adResponseId, enhanced_prompt: prompt, product_name: product } = membersOf(body);
  return typeof adResponseId === "string" && adResponseId && typeof prompt === "string" && prompt
    ? { adResponseId, prompt, productName: typeof product === "string" ? product : undefined }
    : undefined;
}

/** The body of a 2xx to an acknowledgment; undefined if it isn't one. A page of a proxy is none, whatever its status. */
export function parseAccepted(
  body: unknown,
): { readonly adAckId: string; readonly status: AcknowledgmentStatus } | undefined {
  const { ad_ack_id: adAckId, status } = membersOf(body);
  const known = STATUSES.find((one) => one === status);
  return typeof adAckId === "string" && known ? { adAckId, status: known } : undefined;
}

/** The members of a JSON object. Other values have none that a body has. */
export function membersOf(value: unknown): Readonly<Record<string, unknown>> {
  return Object(value);
}

import { z } from "zod";
import { ERROR_CATALOGUE, type ErrorCode } from "./error-codes.ts";

export const PROBLEM_CONTENT_TYPE = "application/problem+json";

/** One fault in a request: `path` is dotted (`request_context.user_ip`), empty for the body as a whole. */
export const fieldFaultSchema = z.object({ path: z.string(), message: z.string() });
export type FieldFault = z.infer<typeof fieldFaultSchema>;

/** An error answer by RFC 9457. Unknown members are kept: other services may send more. */
export const problemSchema = z.looseObject({
  type: z.string(),
  title: z.string(),
  status: z.number().int(),
  detail: z.string().optional(),
  code: z.string(),
  request_id: z.string(),
  errors: z.array(fieldFaultSchema).optional(),
});
export type Problem = z.infer<typeof problemSchema>;

/** What a problem says beyond its catalogue entry. */
export interface ProblemDetails {
  readonly detail?: string;
  readonly errors?: readonly FieldFault[];
  /** Members of our own (RFC 9457, section 3.2). */
  readonly extensions?: Readonly<Record<string, string>>;
}

/** Builds the body of an error answer from the catalogue. */
export function makeProblem(code: ErrorCode, requestId: string, details: ProblemDetails = {}): Problem {
  const { status, title } = ERROR_CATALOGUE[code];
  return {
    type: `urn:adrelay:error:${code}`,
    title,
    status,
    ...(details.detail === undefined ? {} : { detail: details.detail }),
    code,
    request_id: requestId,
    ...(details.errors === undefined ? {} : { errors: [...details.errors] }),
    ...details.extensions,
  };
}

/** Turns zod's issues into field faults, in the order in which zod found them. */
export function faultsOf(error: z.ZodError): FieldFault[] {
  return error.issues.map((issue) => ({ path: issue.path.map(String).join("."), message: messageOf(issue) }));
}

/** What a member's name looks like; everything else that stands in its place may be what a user wrote (invariant 6). */
const MEMBER_NAME = /^[a-z_]{1,32}$/;

function messageOf(issue: z.core.$ZodIssue): string {
  const isPlain = issue.code !== "unrecognized_keys" || issue.keys.every((key) => MEMBER_NAME.test(key));
  return isPlain ? issue.message : "has members that are not known";
}

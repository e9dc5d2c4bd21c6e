/** What operators send: query parameters, filters, places in a list. */
import {
  DISCARD_REASON_CHARS_MAX,
  duplicateKeys,
  type FilterView,
  faultsOf,
  PAGE_ROWS_MAX,
  publisherIdSchema,
} from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { type JsonBody, type ReadBody, readJson, sendProblem } from "@adrelay/service-kit";
import { AUDIT_PLACE, type DeadFilter, type ListPlace } from "@adrelay/store";
import type { Request, Response } from "express";
import { z } from "zod";
import { isoTime } from "../store-answers.ts";

const timeSchema = z.iso
  .datetime({ offset: true, error: "must be a time in ISO 8601, such as 2026-01-31T12:00:00Z" })
  .transform((text) => Date.parse(text));

/** One of a few names. The fault names all of them. */
export function oneOf<const T extends readonly [string, ...string[]]>(what: string, names: T) {
  return z.enum(names, { error: `there is no such ${what}; known: ${names.join(", ")}` });
}

/** Selects dead letters that died at `since` or later, and before `until`. `code` is the provider's own. */
export const FILTER_FIELDS = {
  publisher: publisherIdSchema.optional(),
  reason: oneOf("reason", DEAD_REASONS).optional(),
  code: z
    .string()
    .regex(/^[A-Za-z0-9_.-]{1,64}$/, "must be 1 to 64 letters, digits, _ . or -")
    .optional(),
  since: timeSchema.optional(),
  until: timeSchema.optional(),
} as const;

/** In a body: only ids that nobody injected through the relay. */
export const ONLY_UNKNOWN = {
  unknown: z.literal(true, { error: "must be true; without it, known ids match as well" }).optional(),
} as const;

/** An operator's reason for a discard. Only the audit keeps it. */
export const discardReasonSchema = z
  .string()
  .trim()
  .regex(/\S/, "must not be empty")
  .max(DISCARD_REASON_CHARS_MAX, `must have at most ${DISCARD_REASON_CHARS_MAX} characters`);

export const limitSchema = z
  .string()
  .regex(/^\d+$/, "must be a whole number")
  .transform(Number)
  .pipe(z.number().min(1, "must be at least 1").max(PAGE_ROWS_MAX, `must be at most ${PAGE_ROWS_MAX}`))
  .prefault("50")
  // In the OpenAPI document it is the number that the text spells.
  .meta({
    override: ({ jsonSchema }) => {
      delete jsonSchema.pattern;
      Object.assign(jsonSchema, { type: "integer", minimum: 1, maximum: PAGE_ROWS_MAX, default: 50 });
    },
  });

interface FilterForm {
  readonly publisher?: DeadFilter["publisher"] | undefined;
  readonly reason?: DeadFilter["reason"];
  readonly code?: DeadFilter["code"];
  /** A query has texts only. */
  readonly unknown?: true | "true" | undefined;
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

export function filterOf({ publisher, reason, code, unknown, since, until }: FilterForm): DeadFilter {
  return { publisher, reason, code, onlyUnknown: unknown !== undefined, sinceMs: since, untilMs: until };
}

/** A filter as answers show it. */
export function filterView(filter: DeadFilter): FilterView {
  const { publisher, reason, code, onlyUnknown, sinceMs, untilMs } = filter;
  return {
    publisher: publisher ?? null,
    reason: reason ?? null,
    code: code ?? null,
    unknown: onlyUnknown === true ? true : null,
    since: isoTime(sinceMs),
    until: isoTime(untilMs),
  };
}

interface TimeSpan {
  readonly since?: number | undefined;
  readonly until?: number | undefined;
}

/** Whether a span can contain anything; for a schema's `refine`. */
export function isSpan({ since, until }: TimeSpan): boolean {
  return since === undefined || until === undefined || since < until;
}
export const EMPTY_SPAN = { path: ["until"], error: "must be later than since" };

/** Cursors are opaque to callers: base64url of where a page ended. */
export const cursorSchema = (place: RegExp) =>
  z
    .string()
    .transform((text) => Buffer.from(text, "base64url").toString("latin1"))
    .pipe(z.string().regex(place, "is not a cursor of this list"));

const ENTRY_PLACE = /^(\d{1,16})\.([0-9a-f]{32})$/;

export const entryCursorSchema = cursorSchema(ENTRY_PLACE).transform((text): ListPlace => {
  const [, timeMs, member = ""] = ENTRY_PLACE.exec(text) ?? [];
  return { timeMs: Number(timeMs), member };
});
export const auditCursorSchema = cursorSchema(AUDIT_PLACE);

export function entryCursor({ timeMs, member }: ListPlace): string {
  return Buffer.from(`${timeMs}.${member}`, "latin1").toString("base64url");
}
export function auditCursor(place: string): string {
  return Buffer.from(place, "latin1").toString("base64url");
}

/** The body, if each member is there once and it matches the schema. Undefined if a refusal was sent. */
export async function readForm<T>(
  schema: z.ZodType<T>,
  readBody: ReadBody,
  { request, response }: { readonly request: Request; readonly response: Response },
): Promise<T | undefined> {
  const body = await readJson(readBody, request, response);
  const isClear = body !== undefined && refuseRepeats(body, response);
  return isClear ? parseForm(schema, body.value, response) : undefined;
}

/** Refuses a body with a repeated member, because nobody can say which one is meant. False if it was refused. */
function refuseRepeats({ text, value }: JsonBody, response: Response): boolean {
  const repeated = duplicateKeys(text, Object.keys(value));
  if (repeated.length > 0) {
    const errors = repeated.map((path) => ({ path, message: "must not be repeated" }));
    sendProblem(response, "validation_failed", { errors });
  }
  return repeated.length === 0;
}

/** The input, if it matches the schema. Undefined if a refusal was sent. */
export function parseForm<T>(schema: z.ZodType<T>, value: unknown, response: Response): T | undefined {
  const parsed = schema.safeParse(value);
  if (!parsed.success) {
    sendProblem(response, "validation_failed", { errors: faultsOf(parsed.error) });
  }
  return parsed.data;
}

/** What operators send: query parameters, filters, places in a list. */
import { duplicateKeys, faultsOf, PAGE_ROWS_MAX, publisherIdSchema } from "@adrelay/contract";
import { DEAD_REASONS } from "@adrelay/core";
import { type JsonBody, sendProblem } from "@adrelay/service-kit";
import { AUDIT_PLACE, type ListPlace } from "@adrelay/store";
import type { Response } from "express";
import { z } from "zod";

const timeSchema = z.iso
  .datetime({ offset: true, error: "must be a time in ISO 8601, such as 2026-01-31T12:00:00Z" })
  .transform((text) => Date.parse(text));

/** Selects dead letters that died at `since` or later, and before `until`. */
export const FILTER_FIELDS = {
  publisher: publisherIdSchema.optional(),
  reason: z.enum(DEAD_REASONS).optional(),
  since: timeSchema.optional(),
  until: timeSchema.optional(),
} as const;

export const limitSchema = z
  .string()
  .regex(/^\d+$/, "must be a whole number")
  .transform(Number)
  .pipe(z.number().min(1, "must be at least 1").max(PAGE_ROWS_MAX, `must be at most ${PAGE_ROWS_MAX}`))
  .prefault("50");

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

/** Refuses a body with a repeated member, because nobody can say which one is meant. False if it was refused. */
export function refuseRepeats({ text, value }: JsonBody, response: Response): boolean {
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

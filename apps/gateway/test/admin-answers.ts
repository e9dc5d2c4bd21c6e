/** The schema of each answer of the admin API. */
import {
  acknowledgmentDetailSchema,
  acknowledgmentPageSchema,
  acknowledgmentStateSchema,
  adoptionSchema,
  auditPageSchema,
  discardListSchema,
  discardViewSchema,
  doctorReportSchema,
  dryRunSchema,
  erasureSchema,
  problemSchema,
  publishersViewSchema,
  replayListSchema,
  replayViewSchema,
  statsSchema,
} from "@adrelay/contract";
import { expect } from "vitest";
import { z } from "zod";

/** A call's method and path, with a colon before each parameter, and the schema of its answer. */
const FORMS = {
  "GET /stats": statsSchema,
  "GET /acknowledgments": acknowledgmentPageSchema,
  "GET /acknowledgments/:id": acknowledgmentDetailSchema,
  "POST /acknowledgments/:id/replay": acknowledgmentStateSchema,
  "POST /acknowledgments/:id/discard": acknowledgmentStateSchema,
  "GET /replays": replayListSchema,
  "POST /replays": z.union([replayViewSchema, dryRunSchema]),
  "GET /replays/:id": replayViewSchema,
  "POST /replays/:id/cancel": replayViewSchema,
  "POST /publishers/:id/adopt": adoptionSchema,
  "POST /erasures": erasureSchema,
  "GET /publishers": publishersViewSchema,
  "GET /discards": discardListSchema,
  "POST /discards": z.union([discardViewSchema, dryRunSchema]),
  "GET /discards/:id": discardViewSchema,
  "POST /discards/:id/cancel": discardViewSchema,
  "GET /audit": auditPageSchema,
  "GET /doctor": doctorReportSchema,
} as const satisfies Record<string, z.ZodType>;

/** All calls of the admin API. */
export const ADMIN_CALLS = Object.keys(FORMS);

/** The call that matches; undefined if none does. */
export function callOf(method: string, path: string): string | undefined {
  const [bare = ""] = path.split("?");
  const patterns = ADMIN_CALLS.map(
    (call) => [call, new RegExp(`^${call.replace(":id", "[^/]+")}$`)] as const,
  );
  return patterns.find(([, pattern]) => pattern.test(`${method} ${bare}`))?.[0];
}

/**
 * Fails unless an answer matches the contract's schema and has no further member, which the contract's readers would
 * drop.
 */
export function expectAgreedForm(call: string | undefined, status: number, json: unknown): void {
  const form = Object.entries(FORMS).find(([name]) => name === call)?.[1];
  const schema = status < 300 ? form : problemSchema;
  expect(schema, `an answer ${status} of ${call}`).toBeDefined();
  expect(schema?.parse(json)).toEqual(json);
}

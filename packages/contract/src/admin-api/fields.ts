/**
 * Parts of the admin API's answers. Times are ISO 8601 in UTC by Redis' clock; they are null if the event has not happened. All
 * schemas drop unknown members, so that an older reader works with a newer gateway.
 */
import { z } from "zod";

/** Path that all calls of the admin API begin with. */
export const ADMIN_PATH = "/admin/v1";

/** The most rows that one page of a list can have. */
export const PAGE_ROWS_MAX = 500;

/** Lenient, because readers need no more than a text. */
export const time = z.string().meta({ format: "date-time" });
export const timeOrNull = time.nullable();
export const textOrNull = z.string().nullable();
export const count = z.number();

export const circuitReasonSchema = z.enum(["outage", "auth", "throttled"]);

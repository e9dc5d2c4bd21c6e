import { z } from "zod";

export const ABUSES = [
  "long injections",
  "stopped uploads",
  "waiting acknowledgments",
  "small requests",
] as const;

/** The message that asks the abuser for an abuse. */
export const abusePlanSchema = z.object({
  abuse: z.enum(ABUSES),
  origin: z.string(),
  key: z.string(),
  /** So many requests, evenly over the time. */
  count: z.number(),
  durationMs: z.number(),
});
export type AbusePlan = z.infer<typeof abusePlanSchema>;

/** The message that the abuser sends in the end: answers by status. */
export const abusedSchema = z.object({
  kind: z.literal("abused"),
  answers: z.record(z.string(), z.number()),
});

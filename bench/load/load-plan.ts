import { z } from "zod";

/** What a load generator is asked for. */
export const loadPlanSchema = z.object({
  kind: z.literal("load"),
  origin: z.string(),
  path: z.string(),
  headers: z.record(z.string(), z.string()),
  connections: z.number(),
  /**
   * Open loop: this many requests are due each second, however long answers take; one that finds all connections busy
   * waits, and that counts. Without it, closed loop: each connection sends its next request once it has the answer.
   */
  ratePerSecond: z.number().optional(),
  body: z.discriminatedUnion("kind", [
    /** Acknowledgments of ids that follow one another. */
    z.object({ kind: z.literal("acknowledgments"), prefix: z.string() }),
    z.object({ kind: z.literal("fixed"), text: z.string() }),
  ]),
  /** The one status that is no failure. */
  status: z.number(),
  length: z.discriminatedUnion("kind", [
    z.object({ kind: z.literal("time"), warmupMs: z.number(), durationMs: z.number() }),
    z.object({ kind: z.literal("count"), count: z.number() }),
  ]),
});
export type LoadPlan = z.infer<typeof loadPlanSchema>;

/** Told when the warm-up is over. */
export const loadBegunSchema = z.object({ kind: z.literal("begun") });

/** Told in the end. */
export const loadResultSchema = z.object({
  kind: z.literal("ended"),
  /** Answers as expected, within the timed part. */
  count: z.number(),
  durationMs: z.number(),
  p50Ms: z.number(),
  p99Ms: z.number(),
  /** How many requests were sent, the warm-up's too. */
  sent: z.number(),
  /** Answers with another status, and requests without an answer, in all. */
  failures: z.number(),
  /** One of them. */
  failure: z.string(),
});
export type LoadResult = z.infer<typeof loadResultSchema>;

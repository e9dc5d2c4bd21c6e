import { z } from "zod";

/** Starts the provider's count anew, and says at which counts it is to be told of. */
export const milestonesSchema = z.object({ kind: z.literal("watch"), milestones: z.array(z.number()) });

/** One of them. */
export const reachedSchema = z.object({
  kind: z.literal("reached"),
  count: z.number(),
  /** By the provider's clock, since 1970. */
  atMs: z.number(),
});
export type Reached = z.infer<typeof reachedSchema>;

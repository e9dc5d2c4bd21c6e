/** The admin API's view of the publishers that are in force, and of what one left to another. */
import { z } from "zod";
import { count, textOrNull } from "./fields.ts";

const keyViewSchema = z.object({
  id: z.string(),
  state: z.enum(["valid", "expiring", "expired"]),
  created: z.string().nullable(),
  expires: z.string().nullable(),
  /** To within a minute. Null for a key that wasn't used in the last 400 days. */
  last_used: z.string().nullable(),
});

const publisherViewSchema = z.object({
  id: z.string(),
  name: z.string(),
  /** The name of its provider account. */
  provider: z.string(),
  keys: z.array(keyViewSchema),
});

/** Answer of `GET /publishers`. */
export const publishersViewSchema = z.object({
  /** Null if the settings name no file. `valid` is false while the file is faulty, and an older one is in force. */
  file: z.object({ digest: z.string(), valid: z.boolean(), loaded_at: z.string() }).nullable(),
  publishers: z.array(publisherViewSchema),
});
/** A checked answer of `GET /publishers`. */
export type PublishersView = z.infer<typeof publishersViewSchema>;

export const strandedCountsSchema = z.object({ dead: count, queued: count, awaiting: count });

/**
 * Answer to a batch of an adoption: how many were adopted by state, and how many an attempt holds. `next_cursor` is null after
 * the last batch.
 */
export const adoptionSchema = z.object({
  from: z.string(),
  to: z.string(),
  adopted: strandedCountsSchema,
  under_way: count,
  next_cursor: textOrNull,
});
/** A checked answer to a batch of an adoption. */
export type AdoptionView = z.infer<typeof adoptionSchema>;

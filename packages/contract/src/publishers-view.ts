/** The admin API's view of the publishers that are in force. */
import { z } from "zod";

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

/** The admin API's view of what operators did. */
import { z } from "zod";
import { textOrNull, time } from "./fields.ts";

const auditViewSchema = z.object({
  at: time,
  by: z.string(),
  /** Where the operator called from. Older gateways don't send it, nor which publisher it concerned. */
  address: textOrNull.default(null),
  publisher: textOrNull.default(null),
  /** A newer gateway may send others. */
  action: z.string(),
  ad_response_id: textOrNull,
  replay_id: textOrNull,
  /** An older gateway doesn't send it. */
  discard_id: textOrNull.default(null),
  details: z.unknown(),
});
/** One action of an operator, with its time, and the operator's name and address. */
export type AuditView = z.infer<typeof auditViewSchema>;

/** One page of the audit, newest first. `next_cursor` is null on the last page. */
export const auditPageSchema = z.object({ entries: z.array(auditViewSchema), next_cursor: textOrNull });

import { z } from "zod";

/** Where each process tells whether it can do its work, on its ops listener. */
export const READINESS_PATH = "/readyz";

/** What `/readyz` answers, with 200 if ready and 503 if not. */
export const readinessSchema = z.object({
  status: z.enum(["ready", "not_ready"]),
  stopping: z.boolean(),
  /** Dependencies by name. */
  checks: z.record(z.string(), z.enum(["ok", "failing"])),
  /** What a person should know although the process can do its work. */
  warnings: z.record(z.string(), z.string()).optional(),
});
export type Readiness = z.infer<typeof readinessSchema>;

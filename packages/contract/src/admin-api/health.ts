/** Answers of the ops listener about the health of a process and of the relay. */
import { z } from "zod";
import { time } from "./fields.ts";

const doctorCheckSchema = z.object({
  name: z.string(),
  status: z.enum(["ok", "warn", "fail"]),
  detail: z.string(),
});
/** One check of the doctor. `detail` explains the status to a person. */
export type DoctorCheck = z.infer<typeof doctorCheckSchema>;

/** Answer of `GET /doctor`: checks of Redis, providers, workers and clocks. */
export const doctorReportSchema = z.object({ at: time, checks: z.array(doctorCheckSchema) });
/** A checked answer of `GET /doctor`. */
export type DoctorReport = z.infer<typeof doctorReportSchema>;

/** Path of the readiness check, on the ops listener of each process. It needs no token. */
export const READINESS_PATH = "/readyz";
/** Path of a gateway's readiness for injections alone, which need no Redis. */
export const INJECTION_READINESS_PATH = "/readyz/injections";

/** Answer of a readiness check. Its HTTP status is 200 if the process is ready, and 503 if not. */
export const readinessSchema = z.object({
  status: z.enum(["ready", "not_ready"]),
  stopping: z.boolean(),
  /** One result for each dependency. */
  checks: z.record(z.string(), z.enum(["ok", "failing"])),
  /** What an operator should know although the process is ready, by name. */
  warnings: z.record(z.string(), z.string()).optional(),
});
/** A checked answer of the readiness check. */
export type Readiness = z.infer<typeof readinessSchema>;

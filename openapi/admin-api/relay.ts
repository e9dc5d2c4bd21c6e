/** Calls about the whole relay, and about what operators did. */
import { auditPageSchema, doctorReportSchema, statsSchema } from "@adrelay/contract";
import type { ZodOpenApiPathsObject } from "zod-openapi";
import { auditQuerySchema } from "../../apps/gateway/src/admin/stats.ts";
import { call, FOR_ALL_TOKENS } from "./call.ts";

export const RELAY_PATHS: ZodOpenApiPathsObject = {
  "/stats": {
    get: call({
      id: "getStats",
      tag: "Relay",
      summary: "Counts, queue, providers and processes at one time",
      answer: statsSchema.meta({ id: "Stats" }),
      never: FOR_ALL_TOKENS,
    }),
  },
  "/doctor": {
    get: call({
      id: "runDoctor",
      tag: "Relay",
      summary: "Check Redis, providers, workers and clocks",
      answer: doctorReportSchema.meta({ id: "DoctorReport" }),
      // Without Redis it is a report, too.
      never: ["queue_unavailable"],
    }),
  },
  "/audit": {
    get: call({
      id: "listAudit",
      tag: "Relay",
      summary: "Who did what, newest first",
      params: { query: auditQuerySchema },
      answer: auditPageSchema.meta({ id: "AuditPage" }),
      codes: ["validation_failed"],
      never: FOR_ALL_TOKENS,
    }),
  },
};

/** What each ops listener answers about its process: health, readiness and metrics. */
import { INJECTION_READINESS_PATH, READINESS_PATH, readinessSchema } from "@adrelay/contract";
import { z } from "zod";
import type { ZodOpenApiPathsObject } from "zod-openapi";
import { BEARER_HEADERS, EVERY_HEADER, jsonAnswer, problemAnswers } from "../answers.ts";
import { OPS_CODES } from "./call.ts";

const readiness = readinessSchema.meta({ id: "Readiness" });

export const PROCESS_PATHS: ZodOpenApiPathsObject = {
  "/healthz": {
    get: {
      operationId: "getHealth",
      summary: "Whether the process runs",
      tags: ["Process"],
      security: [],
      responses: {
        ...problemAnswers(OPS_CODES),
        "200": jsonAnswer({ description: "It runs.", schema: z.object({ status: z.literal("ok") }) }),
      },
    },
  },
  [READINESS_PATH]: {
    get: {
      operationId: "getReadiness",
      summary: "Whether the process can do its work",
      tags: ["Process"],
      security: [],
      responses: {
        ...problemAnswers(OPS_CODES),
        "200": jsonAnswer({ description: "It can.", schema: readiness }),
        "503": jsonAnswer({ description: "It can't, or it stops.", schema: readiness }),
      },
    },
  },
  [INJECTION_READINESS_PATH]: {
    get: {
      operationId: "getReadinessForInjections",
      summary: "Whether the gateway can pass injections through",
      description: "Only gateways have it. It doesn't depend on Redis.",
      tags: ["Process"],
      security: [],
      responses: {
        ...problemAnswers(OPS_CODES),
        "200": jsonAnswer({ description: "It can.", schema: readiness }),
        "503": jsonAnswer({ description: "It stops.", schema: readiness }),
      },
    },
  },
  "/metrics": {
    get: {
      operationId: "getMetrics",
      summary: "Metrics for Prometheus",
      description: "It needs a token if METRICS_TOKEN is set.",
      tags: ["Process"],
      security: [{}, { MetricsToken: [] }],
      responses: {
        ...problemAnswers([...OPS_CODES, "unauthenticated", "too_many_logins"], BEARER_HEADERS),
        "200": {
          description: "The metrics, in the format that Accept prefers.",
          headers: z.object({ ...EVERY_HEADER, Vary: z.string() }),
          content: {
            "text/plain": { schema: z.string() },
            "application/openmetrics-text": { schema: z.string() },
          },
        },
      },
    },
  },
};

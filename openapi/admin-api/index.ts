/** The document of the gateway's ops listener: health, metrics and the admin API. */
import { ADMIN_PATH } from "@adrelay/contract";
import { type ApiDescription, DOCUMENT_TAG } from "../document.ts";
import { ACKNOWLEDGMENT_PATHS } from "./acknowledgments.ts";
import { BULK_PATHS } from "./bulk-changes.ts";
import { PROCESS_PATHS } from "./process.ts";
import { PUBLISHER_PATHS } from "./publishers.ts";
import { RELAY_PATHS } from "./relay.ts";

const ADMIN_CALLS = { ...RELAY_PATHS, ...PUBLISHER_PATHS, ...ACKNOWLEDGMENT_PATHS, ...BULK_PATHS };

export const ADMIN_API: ApiDescription = {
  title: "Adrelay for operators",
  description:
    "The gateway's ops listener. Workers and ad servers answer `/healthz`, `/readyz` and `/metrics` on their own ops listeners in the same way. Times are ISO 8601 in UTC by Redis' clock. A newer gateway may send further members.",
  servers: [{ url: "http://127.0.0.1:8081", description: "npm start" }],
  tags: [
    { name: "Relay", description: "The whole relay, and what operators did." },
    { name: "Acknowledgments", description: "One by one, or a page of them." },
    { name: "Dead letters", description: "Replay or discard what could not be delivered." },
    { name: "Publishers", description: "Who sends acknowledgments." },
    { name: "Privacy", description: "Erase what users wrote." },
    { name: "Process", description: "Health and metrics of this process." },
    DOCUMENT_TAG,
  ],
  securitySchemes: {
    OperatorToken: {
      type: "http",
      scheme: "bearer",
      description: "ADMIN_TOKEN, or a token of OPERATORS_FILE.",
    },
    MetricsToken: { type: "http", scheme: "bearer", description: "METRICS_TOKEN." },
  },
  paths: {
    ...PROCESS_PATHS,
    ...Object.fromEntries(Object.entries(ADMIN_CALLS).map(([path, item]) => [ADMIN_PATH + path, item])),
  },
};

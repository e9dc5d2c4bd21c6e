import type { DashboardSpec, PanelSpec } from "./dashboard-spec.ts";
import { ledgerIncrease, ledgerOrOneZero, ledgerOrZero, orOneZero, orZero, ratePerSecond } from "./promql.ts";

/** The largest share of a limit that is used. */
const fullest = (expr: string, title: string, description: string): PanelSpec => ({
  kind: "number",
  title,
  description,
  unit: "percentunit",
  queries: [{ expr, legend: "fullest" }],
  alarmFrom: 0.9,
});

/** What keeps publishers from each other, and strangers from the relay. */
export const LIMITS: DashboardSpec = {
  name: "limits",
  title: "Adrelay: Limits",
  description: "How near publishers and processes are to their limits, who is refused, and what was erased.",
  hasPublisherChoice: false,
  panels: [
    fullest(
      ledgerOrZero("max(adrelay_quota_used_bytes / adrelay_quota_limit_bytes)"),
      "How much of its quota does the fullest publisher use?",
      "Of Redis' memory. At 100 % its new acknowledgments get 429. Runbook quota-met.",
    ),
    fullest(
      orZero("max(adrelay_in_flight_bytes / adrelay_in_flight_max_bytes)"),
      "How much of its room for bodies does the fullest gateway or proxy use?",
      "At 100 % large injections get fallbacks, and model calls no ad. Runbook gateway-overloaded.",
    ),
    fullest(
      orZero("max(adrelay_delivery_payload_bytes / adrelay_delivery_payload_max_bytes)"),
      "How much of its room for bodies does the fullest worker use?",
      "Large bodies wait in Redis for room. If providers are quick: raise WORKER_PAYLOAD_BYTES and the memory.",
    ),
    {
      kind: "number",
      title: "How many processes refused their publishers' file?",
      description: "They go on with what they had. Runbook publishers-file-refused.",
      unit: "short",
      queries: [{ expr: orZero("count(adrelay_publishers_file_valid == 0)"), legend: "refused" }],
      alarmFrom: 1,
    },
    {
      kind: "number",
      title: "How many publishers' files are in force?",
      description: "1: all processes have the same. More for minutes: runbook publishers-files-differ.",
      unit: "short",
      queries: [
        {
          expr: orZero(
            'max(count by (environment) (count_values by (environment) ("digest", adrelay_publishers_file_digest)))',
          ),
          legend: "files",
        },
      ],
      alarmFrom: 2,
    },
    {
      kind: "number",
      title: "How many acknowledgments did erasures end?",
      description:
        "Queued ones and dead letters: their ads aren't paid. `adrelay audit` says who asked for it.",
      unit: "short",
      queries: [{ expr: ledgerIncrease("adrelay_acknowledgments_erased_total"), legend: "erased" }],
    },
    {
      kind: "lines",
      title: "Which publisher meets which quota?",
      description: "Requests refused, by quota; redis_memory: Redis is nearly full. Runbook quota-met.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond("adrelay_quota_refused_total", "publisher, quota"),
          legend: "{{publisher}} {{quota}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Which publisher uses how much of Redis?",
      description: "What counts against its quotas. dead_bytes: replay or discard dead letters.",
      unit: "bytes",
      queries: [
        {
          expr: ledgerOrOneZero("max by (publisher, quota) (adrelay_quota_used_bytes)"),
          legend: "{{publisher}} {{quota}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "Why do gateways or proxies have no room?",
      description: "Requests refused to all publishers, by job and limit. Runbook gateway-overloaded.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond("adrelay_overload_refused_total", "job, limit"),
          legend: "{{job}} {{limit}}",
        },
      ],
    },
    {
      kind: "lines",
      title: "How many bytes are in flight?",
      description: "Bodies and answers that the processes hold, at the fullest process.",
      unit: "bytes",
      queries: [
        { expr: orOneZero("max by (job) (adrelay_in_flight_bytes)"), legend: "{{job}}" },
        { expr: orZero("max(adrelay_delivery_payload_bytes)"), legend: "worker, large bodies" },
      ],
    },
    {
      kind: "lines",
      title: "How many calls and connections are open?",
      description:
        "At the fullest process of each job. Compare GATEWAY_CALLS_IN_FLIGHT and GATEWAY_CONNECTIONS, or those of the proxy.",
      unit: "short",
      queries: [
        { expr: orOneZero("max by (job) (adrelay_in_flight_calls)"), legend: "{{job}} calls" },
        { expr: orOneZero("max by (job) (adrelay_open_connections)"), legend: "{{job}} connections" },
      ],
    },
    {
      kind: "lines",
      title: "How many log-ins are refused?",
      description: "At the ops listeners, by reason. unknown or slowed: runbook logins-refused.",
      unit: "reqps",
      queries: [
        {
          expr: ratePerSecond("adrelay_logins_refused_total", "endpoint, reason"),
          legend: "{{endpoint}} {{reason}}",
        },
      ],
    },
  ],
};

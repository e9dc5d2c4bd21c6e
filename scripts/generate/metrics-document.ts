/** The document of all metrics, made from registries that the apps' own code fills. */
import { publisherIdSchema } from "@adrelay/contract";
import { collectWithLedger, type LedgerSnapshot, Pulse } from "@adrelay/ledger";
import { reportDurability } from "@adrelay/service-kit";
import { Redis } from "ioredis";
import { Registry } from "prom-client";
import { CatalogMetrics } from "../../apps/ad-server/src/catalog/current-catalog.ts";
import { AdServerMetrics } from "../../apps/ad-server/src/metrics.ts";
import { EmbeddingMetrics } from "../../apps/ad-server/src/relevance/embedding/embedding-metrics.ts";
import { createGatewayMetrics } from "../../apps/gateway/src/metrics/gateway-metrics.ts";
import { createGateMetrics } from "../../apps/worker/src/gates/gate-metrics.ts";
import { createWorkerMetrics } from "../../apps/worker/src/worker-metrics.ts";

const PUBLISHER = publisherIdSchema.parse("default");

const NOTHING: LedgerSnapshot = {
  nowMs: 0,
  states: [],
  totals: new Map(),
  deadLetters: [],
  oldestQueuedAgeMs: 0,
  oldestDeadAgeMs: 0,
  overdue: 0,
  payloadWork: 0,
};

/** Every metric of ours by where it comes from; Node's own stand beside them in each process. */
export async function metricTables(): Promise<string[]> {
  const ledger = await collectWithLedger(new Registry(), {
    ledger: { snapshot: () => Promise.resolve(NOTHING) },
    publishers: [PUBLISHER],
    queueDepths: () => Promise.resolve({}),
  });
  const gateway = new Registry();
  createGatewayMetrics(gateway, [PUBLISHER]);
  const worker = new Registry();
  createWorkerMetrics(worker);
  createGateMetrics(worker, [PUBLISHER]);
  const each = new Registry();
  addPulse(each);
  reportDurability(each, { isDurable: true });
  const noCounts = () => Promise.resolve({ kind: "unavailable", reason: "none" } as const);
  const ofAdServer = new AdServerMetrics({ loadCounts: noCounts });
  new CatalogMetrics(ofAdServer.registry);
  new EmbeddingMetrics(ofAdServer.registry);
  const adServer = await ofAdServer.collect();
  return [
    ...table("Of the ledger: the same on every replica, take `max by`", ledger),
    ...table("Of each gateway", gateway),
    ...table("Of each worker", worker),
    ...table("Of each gateway and worker", each),
    ...table("Of the ad server", adServer),
  ];
}

function addPulse(registry: Registry): void {
  const redis = new Redis({ lazyConnect: true });
  const identity = { role: "gateway" as const, host: "", pid: 0, version: "", startedAtMs: 0 };
  new Pulse({ redis, identity, registry, onDataLost: () => {} });
}

function table(title: string, registry: Registry): string[] {
  const ours = registry.getMetricsAsArray().filter(({ name }) => /^ad(relay|server)_/.test(name));
  const rows = ours.map((metric) => `| \`${signature(metric)}\` | ${typeOf(metric)} | ${metric.help} |`);
  return [`## ${title}`, "", "| Metric | Type | Meaning |", "|---|---|---|", ...rows.sort(), ""];
}

function signature(metric: object & { name: string }): string {
  const labels = "labelNames" in metric && Array.isArray(metric.labelNames) ? metric.labelNames : [];
  return labels.length === 0 ? metric.name : `${metric.name}{${labels.join(",")}}`;
}

function typeOf(metric: object): string {
  return "type" in metric ? String(metric.type) : "";
}

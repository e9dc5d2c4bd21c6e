/** The panels of the dashboards as Grafana reads them, and what they show now. */
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import type { PrometheusClient, Sample } from "@adrelay/dev-servers";
import { z } from "zod";
import { buildDashboards } from "./dashboards.ts";

export interface PanelQuery {
  readonly dashboard: string;
  readonly panel: string;
  readonly description: string;
  readonly unit: string;
  readonly datasource: string;
  readonly legend: string;
  readonly expr: string;
}

/** What Grafana puts in for its variables, here for a stack that has run for a minute. */
const VARIABLES = { $__rate_interval: "30s", $__range: "5m", $publisher: ".*", $environment: ".*" } as const;

const DASHBOARDS = fileURLToPath(new URL("../dashboards/", import.meta.url));
const dashboardSchema = z.object({
  title: z.string(),
  panels: z.array(
    z.object({
      title: z.string(),
      description: z.string(),
      datasource: z.object({ uid: z.string() }),
      fieldConfig: z.object({ defaults: z.object({ unit: z.string() }) }),
      targets: z.array(z.object({ expr: z.string(), legendFormat: z.string() })).min(1),
    }),
  ),
});

/** Every query of every panel of the committed dashboards. */
export function loadPanelQueries(): readonly PanelQuery[] {
  return buildDashboards().flatMap(({ name }) => {
    const text = readFileSync(`${DASHBOARDS}${name}.json`, "utf8");
    const { title, panels } = dashboardSchema.parse(JSON.parse(text));
    return panels.flatMap((panel) =>
      panel.targets.map(({ expr, legendFormat }) => ({
        dashboard: title,
        panel: panel.title,
        description: panel.description,
        unit: panel.fieldConfig.defaults.unit,
        datasource: panel.datasource.uid,
        legend: legendFormat,
        expr,
      })),
    );
  });
}

export type PanelValue =
  | { readonly kind: "shown"; readonly samples: readonly Sample[] }
  | { readonly kind: "empty" }
  | { readonly kind: "failed"; readonly why: string };

/** Evaluates a panel's query now. */
export async function evaluate(client: PrometheusClient, { expr }: PanelQuery): Promise<PanelValue> {
  const answer = await client.query(fillIn(expr));
  if (answer.kind === "failed") {
    return answer;
  }
  return answer.samples.length === 0 ? { kind: "empty" } : { kind: "shown", samples: answer.samples };
}

function fillIn(expr: string): string {
  return Object.entries(VARIABLES).reduce((text, [name, value]) => text.replaceAll(name, value), expr);
}

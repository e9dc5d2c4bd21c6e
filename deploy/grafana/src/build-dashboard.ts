/** Makes Grafana's dashboards from the specs, all with the same layout and style. */
import {
  BigValueColorMode,
  LegendDisplayMode,
  LegendPlacement,
  ReduceDataOptionsBuilder,
  VizLegendOptionsBuilder,
} from "@grafana/grafana-foundation-sdk/common";
import {
  DashboardBuilder,
  DashboardCursorSync,
  DashboardLinkBuilder,
  DashboardLinkType,
  DatasourceVariableBuilder,
  QueryVariableBuilder,
  type Threshold,
  ThresholdsConfigBuilder,
  ThresholdsMode,
  VariableRefresh,
  VariableSort,
} from "@grafana/grafana-foundation-sdk/dashboard";
import { DataqueryBuilder } from "@grafana/grafana-foundation-sdk/prometheus";
import { PanelBuilder as NumberBuilder } from "@grafana/grafana-foundation-sdk/stat";
import { PanelBuilder as LinesBuilder } from "@grafana/grafana-foundation-sdk/timeseries";
import type { DashboardSpec, PanelSpec } from "./dashboard-spec.ts";
import { inEnvironment } from "./promql.ts";

export interface BuiltDashboard {
  readonly name: string;
  readonly json: string;
}

/** Chosen at the top of each dashboard: the uid of a datasource differs between installations. */
const DATASOURCE = { type: "prometheus", uid: "$datasource" };
const TAG = "adrelay";
/** Width in columns; a row has 24. */
const SIZES = { number: { span: 4, height: 5 }, lines: { span: 12, height: 8 } } as const;
/** Queries of a panel are A, B, C … */
const A_CODE = 65;
const CALM = "green";
const ALARM = "red";

export function buildDashboard(spec: DashboardSpec): BuiltDashboard {
  const dashboard = new DashboardBuilder(spec.title)
    .uid(`adrelay-${spec.name}`)
    .description(spec.description)
    .tags([TAG])
    .readonly()
    .refresh("30s")
    .time({ from: "now-3h", to: "now" })
    .timezone("browser")
    .tooltip(DashboardCursorSync.Crosshair)
    .link(
      new DashboardLinkBuilder("Adrelay")
        .type(DashboardLinkType.Dashboards)
        .tags([TAG])
        .keepTime(true)
        .includeVars(true),
    )
    .withVariable(new DatasourceVariableBuilder("datasource").label("Prometheus").type("prometheus"))
    .withVariable(environmentChoice());
  if (spec.hasPublisherChoice) {
    dashboard.withVariable(publisherChoice());
  }
  for (const [at, panel] of spec.panels.entries()) {
    const built = panel.kind === "number" ? buildNumber(panel) : buildLines(panel);
    // The id is part of a panel's address: it changes only if the panel moves.
    dashboard.withPanel(built.id(at + 1));
  }
  return { name: spec.name, json: `${JSON.stringify(dashboard.build(), null, 2)}\n` };
}

/** With All, the numbers of several environments are added up. Without the label there is only All. */
function environmentChoice(): QueryVariableBuilder {
  return new QueryVariableBuilder("environment")
    .label("Environment")
    .datasource(DATASOURCE)
    .query('label_values(up{job=~"adrelay-.*"}, environment)')
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .includeAll(true)
    .allValue(".*");
}

function publisherChoice(): QueryVariableBuilder {
  return new QueryVariableBuilder("publisher")
    .label("Publisher")
    .datasource(DATASOURCE)
    .query(`label_values(${inEnvironment("adrelay_acknowledgments")}, publisher)`)
    .refresh(VariableRefresh.OnTimeRangeChanged)
    .sort(VariableSort.AlphabeticalAsc)
    .multi(true)
    .includeAll(true)
    .allValue(".*");
}

function buildNumber(panel: PanelSpec): NumberBuilder {
  return dress(new NumberBuilder(), panel)
    .colorMode(BigValueColorMode.Value)
    .decimals(panel.unit === "short" ? 0 : 1)
    .reduceOptions(new ReduceDataOptionsBuilder().calcs(["lastNotNull"]));
}

function buildLines(panel: PanelSpec): LinesBuilder {
  return dress(new LinesBuilder(), panel)
    .min(0)
    .fillOpacity(8)
    .legend(
      new VizLegendOptionsBuilder()
        .displayMode(LegendDisplayMode.List)
        .placement(LegendPlacement.Bottom)
        .showLegend(true),
    );
}

/** Sets what both kinds of panel have in common. */
function dress<Builder extends NumberBuilder | LinesBuilder>(builder: Builder, panel: PanelSpec): Builder {
  const { span, height } = SIZES[panel.kind];
  builder
    .title(panel.title)
    .description(panel.description)
    .datasource(DATASOURCE)
    .unit(panel.unit)
    .span(span)
    .height(height)
    .thresholds(new ThresholdsConfigBuilder().mode(ThresholdsMode.Absolute).steps(thresholdsOf(panel)));
  for (const [at, { expr, legend }] of panel.queries.entries()) {
    const query = new DataqueryBuilder().refId(String.fromCharCode(A_CODE + at)).datasource(DATASOURCE);
    if (panel.kind === "number") {
      // Of a range Grafana would show the last value that there was, also if there is none now.
      query.instant();
    }
    builder.withTarget(query.expr(inEnvironment(expr)).legendFormat(legend));
  }
  return builder;
}

function thresholdsOf({ alarmFrom, alarmBelow }: PanelSpec): Threshold[] {
  if (alarmBelow !== undefined) {
    return [
      { value: null, color: ALARM },
      { value: alarmBelow, color: CALM },
    ];
  }
  const calm = { value: null, color: CALM };
  return alarmFrom === undefined ? [calm] : [calm, { value: alarmFrom, color: ALARM }];
}

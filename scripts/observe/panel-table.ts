/** The current values of all panels, as lines for a terminal. */
import type { PanelQuery, PanelValue } from "../../deploy/grafana/src/panels.ts";

export interface ShownQuery {
  readonly query: PanelQuery;
  readonly value: PanelValue;
}

/** How many series of a panel are printed at most. */
const SERIES_MAX = 9;

/** A heading for each dashboard and a line for each of its panels. */
export function formatPanels(shown: readonly ShownQuery[]): string {
  const width = Math.max(...shown.map(({ query }) => query.panel.length));
  const dashboards = Map.groupBy(shown, ({ query }) => query.dashboard);
  const sections = [...dashboards].map(([dashboard, queries]) => {
    const panels = Map.groupBy(queries, ({ query }) => query.panel);
    const lines = [...panels].map(([panel, ofPanel]) => `  ${panel.padEnd(width)}  ${formatPanel(ofPanel)}`);
    return [dashboard, ...lines].join("\n");
  });
  return sections.join("\n\n");
}

function formatPanel(queries: readonly ShownQuery[]): string {
  const values = queries.flatMap(({ query, value }) => formatQuery(query, value));
  // If a panel has only one value, its title is enough.
  const isOne = queries.length === 1 && queries[0]?.query.legend.includes("{{") === false;
  const printed = values
    .slice(0, SERIES_MAX)
    .map(({ name, text }) => (isOne || name === "" ? text : `${name} ${text}`));
  const more = values.length > SERIES_MAX ? [`and ${values.length - SERIES_MAX} more`] : [];
  return [...printed, ...more].join(", ");
}

function formatQuery(
  { legend, unit }: PanelQuery,
  value: PanelValue,
): readonly { readonly name: string; readonly text: string }[] {
  switch (value.kind) {
    case "shown":
      return value.samples.map((sample) => ({
        name: legend.replaceAll(/\{\{(\w+)\}\}/g, (_, label: string) => sample.labels[label] ?? "").trim(),
        text: formatValue(sample.value, unit),
      }));
    case "empty":
      return [{ name: "", text: "NO DATA" }];
    case "failed":
      return [{ name: "", text: `FAILED: ${value.why}` }];
    default:
      return value satisfies never;
  }
}

const MIB_BYTES = 1024 * 1024;

/** A value in one of Grafana's units. With an unknown unit it is a plain number. */
export function formatValue(value: number, unit: string): string {
  if (!Number.isFinite(value)) {
    return "–";
  }
  switch (unit) {
    case "percentunit":
      return `${round(value * 100)} %`;
    case "s":
      return value < 1 ? `${round(value * 1000)} ms` : `${round(value)} s`;
    case "cpm":
      return `${round(value)}/min`;
    case "reqps":
      return `${round(value)}/s`;
    case "bytes":
      return `${Math.round(value / MIB_BYTES)} MiB`;
    default:
      return round(value);
  }
}

/** At most one decimal. */
function round(value: number): string {
  return String(Number(value.toFixed(1)));
}

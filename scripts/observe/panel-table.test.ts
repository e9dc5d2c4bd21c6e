import { expect, test } from "vitest";
import type { PanelQuery, PanelValue } from "../../deploy/grafana/src/panels.ts";
import { formatPanels, formatValue } from "./panel-table.ts";

function query(fields: Partial<PanelQuery>): PanelQuery {
  const nothing = { dashboard: "D", panel: "P", description: "", datasource: "", expr: "" };
  return { ...nothing, unit: "short", legend: "value", ...fields };
}

const shown = (value: number, labels: Record<string, string> = {}): PanelValue => ({
  kind: "shown",
  samples: [{ labels, value }],
});

test("a panel is a line below its dashboard, and several values have names", () => {
  const table = formatPanels([
    { query: query({ panel: "Missed?" }), value: shown(3) },
    { query: query({ panel: "How long?", unit: "s", legend: "half" }), value: shown(0.0123) },
    { query: query({ panel: "How long?", unit: "s", legend: "99 %" }), value: shown(2) },
    {
      query: query({ dashboard: "E", panel: "By state", legend: "{{state}}" }),
      value: shown(7, { state: "dead" }),
    },
  ]);
  expect(table).toBe("D\n  Missed?    3\n  How long?  half 12.3 ms, 99 % 2 s\n\nE\n  By state   dead 7");
});

test("an empty or failed panel is easy to see", () => {
  const table = formatPanels([
    { query: query({ panel: "A" }), value: { kind: "empty" } },
    { query: query({ panel: "B" }), value: { kind: "failed", why: "bad" } },
  ]);
  expect(table).toBe("D\n  A  NO DATA\n  B  FAILED: bad");
});

test.each([
  [0.031, "percentunit", "3.1 %"],
  [12, "cpm", "12/min"],
  [0.25, "reqps", "0.3/s"],
  [104_857_600, "bytes", "100 MiB"],
  [Number.NaN, "s", "–"],
  [5, "lightyears", "5"],
])("%d in %s reads %s", (value, unit, text) => {
  expect(formatValue(value, unit)).toBe(text);
});

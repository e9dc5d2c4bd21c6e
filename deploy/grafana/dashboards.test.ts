/** What every panel must have, so that an operator can use it at night. e2e/observe.test.ts runs the queries. */
import { readdirSync, readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { buildDashboards } from "./src/dashboards.ts";
import { loadPanelQueries } from "./src/panels.ts";

const queries = loadPanelQueries();

test("every file of a dashboard is made from the code", () => {
  const files = readdirSync(fileURLToPath(new URL("./dashboards/", import.meta.url)));
  expect(files.sort()).toEqual(
    buildDashboards()
      .map(({ name }) => `${name}.json`)
      .sort(),
  );
});

test("each panel has its own question, a unit, and says what to do", () => {
  const panels = new Map(queries.map((query) => [`${query.dashboard} ${query.panel}`, query]));
  expect(panels.size).toBeGreaterThan(50);
  for (const { panel, description, unit } of panels.values()) {
    expect(panel).toMatch(/^[A-Z].* .* .*\?$/);
    expect(description.length, panel).toBeGreaterThan(15);
    expect(unit, panel).not.toBe("");
  }
});

test("no dashboard names a certain datasource", () => {
  expect(new Set(queries.map(({ datasource }) => datasource))).toEqual(new Set(["$datasource"]));
});

test("panels and rules name only metrics of the code or of rules", () => {
  const read = (path: string) => readFileSync(new URL(path, import.meta.url), "utf8");
  const rules = read("../prometheus/rules.yml");
  const asked = [...queries.map(({ expr }) => expr), rules].join("\n").match(/\badrelay[_:][\w:]+/g) ?? [];
  const names = new Set(asked.map((name) => name.replace(/_seconds_(bucket|count|sum)$/, "_seconds")));
  expect(names.size).toBeGreaterThan(25);
  // The metrics come from the code, because a query shows zero for a metric that no longer exists.
  const known = read("../../docs/metrics.md");
  const isKnown = (name: string) =>
    new RegExp(`\`${name}[{\`]`).test(known) || rules.includes(`record: ${name}\n`);
  expect([...names].filter((name) => !isKnown(name))).toEqual([]);
});

test("metrics of the ledger are never summed over replicas", () => {
  const ofLedger =
    /adrelay_(acknowledgments|dead_letters|injections_recorded|oldest|queue|turns_(?:total|open|unreadable))[a-z_]*(?<!seconds_bucket)/;
  const ledgerQueries = queries.filter(({ expr }) => ofLedger.test(expr));
  expect(ledgerQueries.length).toBeGreaterThan(15);
  expect(ledgerQueries.filter(({ expr }) => !expr.includes("max")).map(({ expr }) => expr)).toEqual([]);
});

test("every series of a panel is of the chosen environment", () => {
  const series = queries.flatMap(
    ({ expr }) => expr.match(/\b(?:adrelay|nodejs|process)[_:][\w:]+\S*|\bup\{\S*/g) ?? [],
  );
  expect(series.length).toBeGreaterThan(80);
  expect(series.filter((text) => !text.includes('{environment=~"$environment"'))).toEqual([]);
});

test("what is of the ledger is no zero while nobody can read it", () => {
  const metrics = readFileSync(new URL("../../docs/metrics.md", import.meta.url), "utf8");
  const section = metrics.split("\n## ").find((text) => text.startsWith("From the ledger")) ?? "";
  const names = [...section.matchAll(/^\| `(\w+)/gm)].map(([, name]) => name);
  expect(names.length).toBeGreaterThan(20);
  const ofLedger = new RegExp(`\\b(?:${names.join("|")}|adrelay:ads_\\w+:\\w+|adrelay:dead_letters:sum)\\{`);
  const ledgerQueries = queries.filter(({ expr }) => ofLedger.test(expr));
  expect(ledgerQueries.length).toBeGreaterThan(30);
  expect(ledgerQueries.filter(({ expr }) => expr.includes("vector(0)")).map(({ expr }) => expr)).toEqual([]);
});

test("a number is asked for as of now, since a range also has values that are over", () => {
  const files = buildDashboards().map(({ json }) => JSON.parse(json));
  const targets = files.flatMap(({ panels }) =>
    panels.flatMap((panel: { type: string; targets: { instant?: boolean }[] }) =>
      panel.targets.map(({ instant = false }) => [panel.type, instant].join(" ")),
    ),
  );
  expect(new Set(targets)).toEqual(new Set(["stat true", "timeseries false"]));
});

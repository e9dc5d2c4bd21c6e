/** What every panel owes to the one who looks at it at night. That its queries work, e2e/observe.test.ts shows. */
import { readdirSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";
import { loadPanelQueries } from "../../e2e/observe/panels.ts";
import { buildDashboards } from "./src/dashboards.ts";

const queries = loadPanelQueries();

test("every file of a dashboard is made from the code", () => {
  const files = readdirSync(fileURLToPath(new URL("./dashboards/", import.meta.url)));
  expect(files.sort()).toEqual(
    buildDashboards()
      .map(({ name }) => `${name}.json`)
      .sort(),
  );
});

test("each panel answers a question of its own, has a unit, and says what to do", () => {
  const panels = new Map(queries.map((query) => [`${query.dashboard} ${query.panel}`, query]));
  expect(panels.size).toBeGreaterThan(50);
  for (const { panel, description, unit } of panels.values()) {
    expect(panel).toMatch(/^[A-Z].* .* .*\?$/);
    expect(description.length, panel).toBeGreaterThan(15);
    expect(unit, panel).not.toBe("");
  }
});

test("no dashboard knows the datasource of anybody", () => {
  expect(new Set(queries.map(({ datasource }) => datasource))).toEqual(new Set(["$datasource"]));
});

test("metrics of the ledger are never summed over replicas", () => {
  const ofLedger =
    /adrelay_(acknowledgments|dead_letters|injections_recorded|oldest|queue)[a-z_]*(?<!seconds_bucket)/;
  const taken = queries.filter(({ expr }) => ofLedger.test(expr));
  expect(taken.length).toBeGreaterThan(15);
  expect(taken.filter(({ expr }) => !expr.includes("max")).map(({ expr }) => expr)).toEqual([]);
});

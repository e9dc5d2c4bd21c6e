/** The alerts: promtool runs the cases of rules.test.yml and rules-hours.test.yml, and each alert must have a test, a runbook and texts. */
import { execFile } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { findTestPrometheus } from "@adrelay/dev-servers";
import { describe, expect, type TestContext, test } from "vitest";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { writeCaseFiles, writeFilesOfAllRules } from "./case-files.ts";
import { linkRunbooks, SHIPPED_RUNBOOKS } from "./link-runbooks.ts";

const HERE = fileURLToPath(new URL("./", import.meta.url));
const ROOT = new URL("../../", import.meta.url);
const RUNBOOKS = "docs/runbooks/";

const alertSchema = z.object({
  alert: z.string(),
  expr: z.string(),
  labels: z.object({ severity: z.enum(["warning", "critical"]) }),
  annotations: z.object({
    summary: z.string().min(10),
    description: z.string().min(40),
    runbook_url: z.url().startsWith(SHIPPED_RUNBOOKS),
  }),
});
const recordSchema = z.object({ record: z.string(), expr: z.string() });
const rulesSchema = z.object({
  groups: z.array(z.object({ rules: z.array(z.union([alertSchema, recordSchema])) })),
});
const testsSchema = z.object({
  tests: z.array(
    z.object({
      alert_rule_test: z
        .array(z.object({ alertname: z.string(), exp_alerts: z.array(z.unknown()).default([]) }))
        .default([]),
    }),
  ),
});

const read = (path: string) => readFileSync(new URL(path, ROOT), "utf8");
const rules = rulesSchema
  .parse(parseYaml(read("deploy/prometheus/rules.yml")))
  .groups.flatMap((group) => group.rules);
const alerts = rules.filter((rule) => "alert" in rule);
const TEST_FILES = ["rules.test.yml", "rules-hours.test.yml"];
const tried = TEST_FILES.flatMap(
  (file) => testsSchema.parse(parseYaml(read(`deploy/prometheus/${file}`))).tests,
).flatMap((one) => one.alert_rule_test);

/** AdrelayNoData: no-data. */
const fileOf = (alert: string) =>
  alert
    .replace("Adrelay", "")
    .replaceAll(/(?<=.)([A-Z])/g, "-$1")
    .toLowerCase();

async function promtool(words: readonly string[], skip: TestContext["skip"]): Promise<void> {
  const prometheus = await findTestPrometheus();
  if (prometheus.kind === "skip") {
    return skip(prometheus.why);
  }
  const run = promisify(execFile)(prometheus.programs.promtool, words, { cwd: HERE });
  await expect(run).resolves.toMatchObject({ stdout: expect.stringContaining("SUCCESS") });
}

/** A folder for the files of one test. */
function makeFolder({ onTestFinished }: TestContext): string {
  const folder = mkdtempSync(join(tmpdir(), "adrelay-rules-"));
  onTestFinished(() => rmSync(folder, { recursive: true }));
  return folder;
}

const parsed = (file: string) => parseYaml(read(`deploy/prometheus/${file}`));
const TIMEOUT = { timeout: 300_000 };

test.for([
  ["check", "config", "prometheus.yml"],
  ["check", "rules", "rules.yml"],
])("promtool %s %s passes for %s", TIMEOUT, (words, { skip }) => promtool(words, skip));

test.for(TEST_FILES)("promtool passes each case of %s", TIMEOUT, async (file, context) => {
  const files = writeCaseFiles(makeFolder(context), { rules: parsed("rules.yml"), testFile: parsed(file) });
  expect(new Set(files).size).toBe(files.length);
  await promtool(["test", "rules", ...files], context.skip);
});

test("every rule can be evaluated on the series of every case", TIMEOUT, async (context) => {
  const folder = makeFolder(context);
  const files = TEST_FILES.flatMap((file) =>
    writeFilesOfAllRules(folder, { rules: parsed("rules.yml"), testFile: parsed(file) }),
  );
  await promtool(["test", "rules", ...files], context.skip);
});

describe.each(alerts)("$alert", ({ alert, annotations }) => {
  test("a test file has a case in which it fires, and one without", () => {
    const own = tried.filter(({ alertname }) => alertname === alert);
    expect(own.map(({ exp_alerts }) => exp_alerts.length)).toEqual(expect.arrayContaining([0, 1]));
    expect(own.every(({ exp_alerts }) => exp_alerts.length <= 1)).toBe(true);
  });

  test("its runbook says what it means, what to look at, what to do", () => {
    expect(annotations.runbook_url).toBe(`${SHIPPED_RUNBOOKS}${fileOf(alert)}.md`);
    const runbook = read(`${RUNBOOKS}${fileOf(alert)}.md`);
    expect(runbook.split("\n")[0]).toBe(`# ${alert}`);
    expect(runbook.match(/^## .*$/gm)).toEqual(["## What it means", "## What to look at", "## What to do"]);
    expect(runbook).toContain("npm run adrelay -- ");
  });
});

test("every runbook belongs to an alert and is in the list", () => {
  const files = readdirSync(new URL(RUNBOOKS, ROOT)).filter((file) => file !== "README.md");
  expect(files.sort()).toEqual(alerts.map(({ alert }) => `${fileOf(alert)}.md`).sort());
  const list = read(`${RUNBOOKS}README.md`);
  expect(files.filter((file) => !list.includes(`(${file})`))).toEqual([]);
});

test("no rule merges environments: each aggregation keeps their label", () => {
  const grouped = rules.flatMap(
    ({ expr }) => expr.match(/\b(?:sum|max|min|group|count|avg)\b\s*(?:by \(\w+)?/g) ?? [],
  );
  expect(grouped.length).toBeGreaterThan(40);
  // The group of an absent() says only whether there is anything at all.
  expect(new Set(grouped.map((text) => text.replace(/^\w+\s*/, "")))).toEqual(
    new Set(["by (environment", ""]),
  );
  const ungrouped = rules.flatMap(({ expr }) => expr.match(/.*\b(?:sum|max|min|group|count|avg)\(.*/g) ?? []);
  expect(ungrouped.filter((line) => !/unless on \(\) group\(/.test(line))).toEqual([]);
});

test("the rules can link to the runbooks at any address", () => {
  const linked = linkRunbooks(read("deploy/prometheus/rules.yml"), "https://wiki.test/$&/runbooks");
  expect(linked).not.toContain(SHIPPED_RUNBOOKS);
  expect(linked.match(/runbook_url: https:\/\/wiki\.test\/\$&\/runbooks\/[a-z-]+\.md$/gm)).toHaveLength(
    alerts.length,
  );
});

/** `npm run eval:ads` as npm calls it, with usable and faulty arguments. */
import { spawn, spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterAll, expect, test } from "vitest";

const SCRIPT = fileURLToPath(new URL("../scripts/eval-ads.ts", import.meta.url));
const folder = mkdtempSync(join(tmpdir(), "adrelay-eval-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** Runs it as npm does when it is called in `folder`: INIT_CWD names that folder. */
function evaluate(...args: string[]) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [SCRIPT, ...args], {
    env: { ...process.env, INIT_CWD: folder },
    encoding: "utf8",
  });
  return { status, stdout, stderr };
}

test("a file's path is relative to the folder where npm was called", () => {
  writeFileSync(
    join(folder, "sound.jsonl"),
    '{"id":"a","prompt":"hello","language":"en","expect":"no_fill","categories":[]}\n',
  );
  expect(evaluate("sound.jsonl")).toMatchObject({
    status: 0,
    stdout: expect.stringContaining("English: 1 prompts"),
  });
});

test("prompts are judged by the ads of another catalogue", () => {
  writeFileSync(
    join(folder, "wish.jsonl"),
    '{"id":"a","prompt":"cheap car hire at Faro airport, 12 to 19 May, automatic","language":"en","expect":"fill","categories":["car-rental"]}\n',
  );
  const ad = {
    id: "roamlark-compact",
    product_name: "Roamlark Compact",
    advertiser: "roamlark",
    category: "car-rental",
    description: "Small cars from forty airports.",
    keywords: ["car rental", "car hire at airport"],
    landing_url: "https://roamlark.example/compact",
    bid_cpm_micros: 3_100_000,
    budget_micros: 40_000_000,
  };
  writeFileSync(join(folder, "catalog.yaml"), JSON.stringify([ad]));
  expect(evaluate("wish.jsonl")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("line 1: categories: car-rental is no category of the catalogue"),
  });
  expect(evaluate("--catalog", "catalog.yaml", "wish.jsonl").stdout).toContain(
    "expected category 100.0 % of 1 fills",
  );
});

test("one part alone ends with its own figures", () => {
  const { status, stdout } = evaluate("--only", "verdicts");
  expect(status).toBe(0);
  expect(stdout).not.toContain("== first catalogue");
  expect(stdout).toMatch(
    /\n== all figures\n\n\| \| English \| Other languages \| All \|\n[^\n]*\n\| verdicts\.jsonl: /,
  );
});

test("it ends without an error when the reader of its output closes", async () => {
  const child = spawn(process.execPath, [SCRIPT], { stdio: ["ignore", "pipe", "pipe"] });
  let errors = "";
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
  });
  child.stdout.once("data", () => child.stdout.destroy());
  const status = await new Promise((resolve) => child.once("exit", resolve));
  expect({ status, errors }).toEqual({ status: 0, errors: "" });
});

test("a faulty file is reported with name and line before the evaluation begins", () => {
  writeFileSync(join(folder, "faulty.jsonl"), "{}\n");
  const { status, stdout, stderr } = evaluate("sound.jsonl", "faulty.jsonl");
  expect({ status, stdout }).toEqual({ status: 2, stdout: "" });
  expect(stderr).toMatch(/^faulty\.jsonl: line 1: id: .*; prompt: [^\n]*\n$/);
});

test.each([
  [["none.jsonl"], /^none\.jsonl: ENOENT/],
  [["."], /^\.: EISDIR/],
  [["--only", "first", "sound.jsonl"], /^--only chooses among the shipped sets and accepts no FILE\n/],
  [["--only", "third"], /^--only must be one of first, second, safety, alarms, development, verdicts\n/],
  [["--catalog", "catalog.yaml"], /^--catalog needs a FILE of prompts\n/],
  [["--catalog", "none.yaml", "sound.jsonl"], /^none\.yaml: CATALOG_FILE: /],
  [["--now", "soon"], /^--now must be a date/],
])("the arguments %j end with 2 and a reason", (args, message) => {
  expect(evaluate(...args)).toMatchObject({ status: 2, stderr: expect.stringMatching(message) });
});

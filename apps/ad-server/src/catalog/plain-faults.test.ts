import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { PLAIN_AD } from "../../testdata/plain-ad.ts";
import { describeFault } from "./catalog-places.ts";
import { loadCatalog, parseCatalog } from "./load-catalog.ts";

const folder = mkdtempSync(join(tmpdir(), "adrelay-plain-faults-"));
afterAll(() => rmSync(folder, { recursive: true }));

/** The faults of a catalogue file, each as one sentence behind its path. */
function faultsOf(text: string): string[] {
  const file = join(folder, "catalog.yaml");
  writeFileSync(file, text);
  const loaded = loadCatalog(file);
  return loaded.kind === "ok"
    ? []
    : loaded.faults.map((fault) => `${fault.path}: ${describeFault(fault).replace(`${file}: `, "")}`);
}

test.each([
  [{ product_name: "" }, "0.product_name: must not be empty"],
  [{ product_name: undefined }, "0.product_name: is missing"],
  [{ product_name: "Velmora ".repeat(11) }, "0.product_name: must have at most 80 characters"],
  [{ description: 7 }, "0.description: must be a text, but is a number"],
  [{ description: null }, "0.description: must be a text, but is empty"],
  [{ keywords: [] }, "0.keywords: must not be empty"],
  [{ keywords: "shoes" }, "0.keywords: must be a list, but is a text"],
  [{ category: "Running Shoes" }, "0.category: must be 1 to 64 small letters, digits or -"],
  [{ bid_cpm_micros: 4.5 }, "0.bid_cpm_micros: must be a whole number"],
  [{ bid_cpm_micros: -1 }, "0.bid_cpm_micros: must be at least 0"],
  [{ frequency_cap: { per_session: 1, per_hours: 0 } }, "0.frequency_cap.per_hours: must be more than 0"],
  [{ start: "yesterday" }, "0.start: must be a time such as 2026-01-31T00:00:00Z"],
  [{ targting: {} }, "0.targting: is no member that is known here"],
  [{ "a.b c": {} }, "0: has a member that isn't known here"],
  [{ targeting: { countries: ["usa"] } }, "0.targeting.countries.0: must be two capital letters, such as US"],
  [{ targeting: { genders: ["man"] } }, "0.targeting.genders.0: must be male or female or other"],
])("the members %j of an ad are refused in plain words", (members, words) => {
  const parsed = parseCatalog([{ ...PLAIN_AD, ...members }]);
  const faults = parsed.kind === "faulty" ? parsed.faults : [];
  expect(faults.map(({ path, message }) => `${path}: ${message}`)).toEqual([`CATALOG_FILE ${words}`]);
});

test("each fault of a file has its line and the ad's id", () => {
  const ad = Object.entries({ ...PLAIN_AD, bid_cpm_micros: -1 }).map(
    ([name, value]) => `  ${name}: ${JSON.stringify(value)}`,
  );
  expect(faultsOf(`-\n${ad.join("\n")}\n-\n${ad.slice(1).join("\n")}\n- 17\n`)).toEqual([
    "CATALOG_FILE 0.bid_cpm_micros: line 9, ad velmora-drift: must be at least 0",
    "CATALOG_FILE 1.id: line 12: is missing",
    "CATALOG_FILE 1.bid_cpm_micros: line 18: must be at least 0",
    "CATALOG_FILE 2: line 20: must be a group of members, but is a number",
  ]);
});

test.each([
  ["- id: a\n   foo: b\n", "2", "is indented wrongly"],
  ["- id: a\n  id: b\n", "2", "is a member that the ad has already"],
  ["- id: a\n\tid: b\n", "2", "doesn't continue the list of ads"],
  [
    "- id: a\n  keywords: [a, b\n  x: 3\n",
    "3",
    "is indented too little, or a bracket or quote before it isn't closed",
  ],
])("the text %j that isn't YAML is refused in plain words with its line", (text, line, words) => {
  const [fault, ...others] = faultsOf(text);
  expect(others).toEqual([]);
  expect(fault).toContain(`CATALOG_FILE: line ${line}: `);
  expect(fault).toContain(words);
});

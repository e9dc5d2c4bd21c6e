import { readFileSync } from "node:fs";
import { Ajv2020 } from "ajv/dist/2020.js";
import formats from "ajv-formats";
import { CORE_SCHEMA, load } from "js-yaml";
import { expect, test } from "vitest";
import { PLAIN_AD as AD } from "../../testdata/plain-ad.ts";
import { catalogJsonSchema } from "./ad.ts";
import { parseCatalog } from "./load-catalog.ts";

const ajv = new Ajv2020({ allErrors: true });
formats.default(ajv);
const isValid = ajv.compile(catalogJsonSchema());

const without = (field: keyof typeof AD) => [
  Object.fromEntries(Object.entries(AD).filter(([name]) => name !== field)),
];

test("the shipped catalogue is valid by the JSON schema", () => {
  const text = readFileSync(new URL("../../catalog/catalog.yaml", import.meta.url), "utf8");
  expect(text).toContain("$schema=./catalog.schema.json");
  isValid(load(text, { schema: CORE_SCHEMA }));
  expect(isValid.errors).toBeNull();
});

test.each([
  [[AD]],
  [[{ ...AD, targeting: {} }]],
  [
    [
      {
        ...AD,
        targeting: { countries: ["US"], regions: ["US-CA"], asns: [1], age_min: 18, languages: ["en"] },
      },
    ],
  ],
  [[{ ...AD, frequency_cap: { per_session: 1, per_hours: 0.5 } }]],
  [[{ ...AD, start: "2026-01-01T00:00:00Z", end: "2026-02-01T00:00:00.5Z" }]],
  [[{ ...AD, adult: true, bid_cpm_micros: 0 }]],
  [[{ ...AD, negative_keywords: [] }]],
  [[{ ...AD, negative_keywords: Array.from({ length: 50 }, (_, n) => `${n} `.padEnd(80, "x")) }]],
  [[{ ...AD, negative_keywords: ["rival.example", "prompt injection", "中古"] }]],
  [[{ ...AD, landing_url: " https://köln-räder.example/rad " }]],
])("the JSON schema and the server both accept %j", (value) => {
  expect([isValid(value), parseCatalog(value).kind]).toEqual([true, "ok"]);
});

test.each([
  [null],
  ["text"],
  [{}],
  [[]],
  [["ad"]],
  [without("id")],
  [without("keywords")],
  [without("landing_url")],
  [[{ ...AD, id: "Velmora Drift" }]],
  [[{ ...AD, id: "" }]],
  [[{ ...AD, product_name: "" }]],
  [[{ ...AD, product_name: "x".repeat(81) }]],
  [[{ ...AD, product_name: 7 }]],
  [[{ ...AD, description: "x ".repeat(201) }]],
  [[{ ...AD, category: "Running Shoes" }]],
  [[{ ...AD, keywords: [] }]],
  [[{ ...AD, keywords: "shoes" }]],
  [[{ ...AD, keywords: Array.from({ length: 51 }, () => "shoes") }]],
  [[{ ...AD, negative_keywords: "free" }]],
  [[{ ...AD, negative_keywords: [""] }]],
  [[{ ...AD, negative_keywords: ["x".repeat(81)] }]],
  [[{ ...AD, negative_keywords: Array.from({ length: 51 }, (_, n) => `${n}`) }]],
  [[{ ...AD, landing_url: "http://velmora.example/" }]],
  [[{ ...AD, landing_url: "velmora.example" }]],
  [[{ ...AD, bid_cpm_micros: 1.5 }]],
  [[{ ...AD, bid_cpm_micros: -1 }]],
  [[{ ...AD, bid_cpm_micros: "1" }]],
  [[{ ...AD, budget_micros: null }]],
  [[{ ...AD, buget_micros: 1 }]],
  [[{ ...AD, targeting: { contries: ["US"] } }]],
  [[{ ...AD, targeting: { countries: ["usa"] } }]],
  [[{ ...AD, targeting: { age_min: -1 } }]],
  [[{ ...AD, targeting: { genders: ["x"] } }]],
  [[{ ...AD, targeting: { languages: ["EN"] } }]],
  [[{ ...AD, frequency_cap: { per_session: 0, per_hours: 1 } }]],
  [[{ ...AD, frequency_cap: { per_session: 1 } }]],
  [[{ ...AD, frequency_cap: { per_session: 1, per_hours: 0 } }]],
  [[{ ...AD, start: "yesterday" }]],
  [[{ ...AD, end: "2026-01-01" }]],
  [[AD, { ...AD, id: 7 }]],
])("the JSON schema and the server both refuse %j", (value) => {
  expect([isValid(value), parseCatalog(value).kind]).toEqual([false, "faulty"]);
});

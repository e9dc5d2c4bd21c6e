import { Ajv2020 } from "ajv/dist/2020.js";
import addFormats from "ajv-formats";
import { expect, test } from "vitest";
import { API_DOCUMENTS } from "./index.ts";

/** All bodies with examples in a document, wherever they are. */
function bodiesIn(
  value: unknown,
  at: string,
): { at: string; schema: object; examples: Record<string, unknown> }[] {
  if (typeof value !== "object" || value === null) {
    return [];
  }
  const own =
    "schema" in value && "examples" in value
      ? [{ at, schema: Object(value.schema), examples: Object(value.examples) }]
      : [];
  return [...own, ...Object.entries(value).flatMap(([name, inner]) => bodiesIn(inner, `${at}/${name}`))];
}

test.each(API_DOCUMENTS)(
  "each example in $path matches the schema beside it",
  ({ text }) => {
    const document = JSON.parse(text);
    const ajv = new Ajv2020({ strict: false, allErrors: true });
    addFormats.default(ajv);
    ajv.addSchema({ $id: "document", components: document.components });
    const bodies = bodiesIn({ paths: document.paths, components: document.components }, "");
    expect(bodies.length).toBeGreaterThan(10);
    for (const { at, schema, examples } of bodies) {
      const resolved = JSON.parse(JSON.stringify(schema).replaceAll('"#/', '"document#/'));
      const validate = ajv.compile(resolved);
      for (const [name, { value }] of Object.entries(examples) as [string, { value: unknown }][]) {
        expect({ at, name, errors: validate(value) ? [] : validate.errors }).toMatchObject({ errors: [] });
      }
    }
  },
  60_000,
);

test.each(API_DOCUMENTS)(
  "each operation in $path has its own name, a summary and a known tag",
  ({ text }) => {
    const { paths, tags } = JSON.parse(text);
    const operations = Object.values<
      Record<string, { operationId: string; summary: string; tags: string[] }>
    >(paths).flatMap((item) => Object.values(item));
    const known = tags.map(({ name }: { name: string }) => name);
    expect(new Set(operations.map(({ operationId }) => operationId)).size).toBe(operations.length);
    for (const { operationId, summary, tags: own } of operations) {
      expect(operationId).toMatch(/^[a-z][A-Za-z]+$/);
      expect(summary).not.toBe("");
      expect(known).toEqual(expect.arrayContaining(own));
    }
  },
);

test.each(API_DOCUMENTS)(
  "a number in $path is never a const, which some generators leave out",
  ({ text }) => {
    const numbers: unknown[] = [];
    JSON.parse(text, (name, value) => {
      if (name === "const" && typeof value === "number") {
        numbers.push(value);
      }
      return value;
    });
    expect(numbers).toEqual([]);
  },
);

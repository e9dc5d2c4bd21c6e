/** What is shipped: a valid list, and licences that we can keep. */
import { Spec, Validation } from "@cyclonedx/cyclonedx-library";
import { expect, test } from "vitest";
import { z } from "zod";
import { readSbom } from "./sbom.ts";

/** Licences that ask only for their text and a notice. Another one needs a decision. */
const ALLOWED = new Set(["0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-3-Clause", "ISC", "MIT", "PSF-2.0"]);

const licenceSchema = z.union([
  z.object({ license: z.object({ id: z.string() }) }).transform(({ license }) => license.id),
  z.object({ license: z.object({ name: z.string() }) }).transform(({ license }) => license.name),
  z.object({ expression: z.string() }).transform(({ expression }) => expression),
]);
const componentSchema = z.object({
  purl: z.string(),
  licenses: z.array(licenceSchema).default([]),
  externalReferences: z
    .array(z.object({ hashes: z.array(z.object({ alg: z.string() })).default([]) }))
    .default([]),
});
const sbomSchema = z.object({ components: z.array(componentSchema) });

const sbom = await readSbom();
const { components } = sbomSchema.parse(JSON.parse(sbom));

test("the list of what is shipped is valid CycloneDX", async () => {
  const validator = new Validation.JsonStrictValidator(Spec.Version.v1dot6);
  expect(await validator.validate(sbom)).toBeNull();
  expect(await validator.validate(sbom.replace('"library"', '"no such type"'))).not.toBeNull();
});

test("it has the packages of all apps, and no tool of tests or development", () => {
  const names = components.map(({ purl }) => purl.replace(/@[^@]*$/, ""));
  for (const name of ["express", "bullmq", "undici", "yargs", "parse5", "%40adrelay/store"]) {
    expect(names).toContain(`pkg:npm/${name}`);
  }
  for (const name of ["vitest", "testcontainers", "%40biomejs/biome", "%40adrelay/testkit"]) {
    expect(names).not.toContain(`pkg:npm/${name}`);
  }
});

test("each foreign package has a hash", () => {
  const foreign = components.filter(({ purl }) => !purl.startsWith("pkg:npm/%40adrelay/"));
  const hashless = foreign.filter(({ externalReferences }) =>
    externalReferences.every(({ hashes }) => hashes.length === 0),
  );
  expect(foreign.length).toBeGreaterThan(50);
  expect(hashless.map(({ purl }) => purl)).toEqual([]);
});

test("each shipped package has a licence, and only allowed ones", () => {
  const refused = components.filter(
    ({ licenses }) => licenses.length === 0 || licenses.some((licence) => !ALLOWED.has(licence)),
  );
  expect(refused.map(({ purl, licenses }) => `${purl}: ${licenses.join()}`)).toEqual([]);
});

import { readFileSync } from "node:fs";
import { type FieldFault, faultsOf } from "@adrelay/contract";
import { parse as parseYaml } from "yaml";
import { z } from "zod";
import { type Ad, adSchema } from "./ad.ts";

export type CatalogResult =
  | { readonly kind: "ok"; readonly ads: readonly Ad[] }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

const catalogSchema = z
  .array(adSchema)
  .min(1, "must hold at least one ad")
  .superRefine((ads, context) => {
    const seen = new Set<string>();
    ads.forEach((ad, index) => {
      if (seen.has(ad.id)) {
        context.addIssue({ code: "custom", path: [index, "id"], message: "is the id of an earlier ad too" });
      }
      seen.add(ad.id);
    });
  });

/** Reads the ads of a YAML file, once, at start; every fault is reported by its place in the file (`3.id` is the id of the fourth ad). */
export function loadCatalog(file: string): CatalogResult {
  const read = readYaml(file);
  return read.kind === "ok" ? parseCatalog(read.value) : read;
}

/** Checks what a catalogue file holds. */
export function parseCatalog(value: unknown): CatalogResult {
  const parsed = catalogSchema.safeParse(value);
  return parsed.success
    ? { kind: "ok", ads: parsed.data }
    : { kind: "faulty", faults: faultsOf(parsed.error).map(inCatalogue) };
}

function inCatalogue({ path, message }: FieldFault): FieldFault {
  return { path: path === "" ? "CATALOG_FILE" : `CATALOG_FILE ${path}`, message };
}

type YamlResult =
  | { readonly kind: "ok"; readonly value: unknown }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

function readYaml(file: string): YamlResult {
  try {
    return { kind: "ok", value: parseYaml(readFileSync(file, "utf8")) };
  } catch (error) {
    const message = error instanceof Error ? error.message : "can't be read";
    return { kind: "faulty", faults: [inCatalogue({ path: "", message })] };
  }
}

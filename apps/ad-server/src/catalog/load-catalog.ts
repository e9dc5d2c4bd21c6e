import { readFileSync, statSync } from "node:fs";
import { type FieldFault, faultsOf } from "@adrelay/contract";
import { CORE_SCHEMA, load as parseYaml } from "js-yaml";
import { z } from "zod";
import { type Ad, adSchema } from "./ad.ts";
import { screenCreative } from "./creative-screening.ts";

export type CatalogResult =
  | { readonly kind: "ok"; readonly ads: readonly Ad[] }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Far more than a catalogue needs, and what can still be read in seconds. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

/** The form of the file; texts are screened and ids compared besides. */
export const catalogFormSchema = z.array(adSchema).min(1, "must hold at least one ad");

/** Reads the ads of a YAML file; every fault is reported by its place in the file (`3.id` is the id of the fourth ad). */
export function loadCatalog(file: string): CatalogResult {
  const read = readYaml(file);
  return read.kind === "ok" ? parseCatalog(read.value) : read;
}

/** Checks what a catalogue file holds; all of its faults come at once. */
export function parseCatalog(value: unknown): CatalogResult {
  const parsed = catalogFormSchema.safeParse(value);
  const faults = [
    ...(parsed.success ? [] : faultsOf(parsed.error)),
    ...(Array.isArray(value) ? [...screenedFaults(value), ...repeatedIds(value)] : []),
  ];
  return parsed.success && faults.length === 0
    ? { kind: "ok", ads: parsed.data }
    : { kind: "faulty", faults: faults.map(inCatalogue) };
}

const text = z.string().catch("");
/** What can be screened of an ad, also where the rest of it has faults. */
const creativeSchema = z.object({
  product_name: text,
  advertiser: text,
  description: text,
  keywords: z.array(text).catch([]),
  landing_url: text,
});

function screenedFaults(ads: readonly unknown[]): FieldFault[] {
  return ads.flatMap((ad, index) => {
    const creative = creativeSchema.safeParse(ad);
    return creative.success
      ? screenCreative(creative.data).map(({ path, message }) => ({ path: `${index}.${path}`, message }))
      : [];
  });
}

/** Ids that stand twice, also among ads that have other faults. */
function repeatedIds(ads: readonly unknown[]): FieldFault[] {
  const ids = ads.map((ad): unknown => Object(ad)["id"]);
  const seen = new Set<unknown>();
  return ids.flatMap((id, index) => {
    const isRepeated = typeof id === "string" && seen.has(id);
    seen.add(id);
    return isRepeated ? [{ path: `${index}.id`, message: "is the id of an earlier ad too" }] : [];
  });
}

function inCatalogue({ path, message }: FieldFault): FieldFault {
  return { path: path === "" ? "CATALOG_FILE" : `CATALOG_FILE ${path}`, message };
}

type YamlResult =
  | { readonly kind: "ok"; readonly value: unknown }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

function readYaml(file: string): YamlResult {
  try {
    if (statSync(file).size > FILE_BYTES_MAX) {
      return { kind: "faulty", faults: [inCatalogue({ path: "", message: "must be at most 64 MiB" })] };
    }
    return { kind: "ok", value: parseYaml(readFileSync(file, "utf8"), { schema: CORE_SCHEMA }) };
  } catch (error) {
    const message = error instanceof Error ? error.message : "can't be read";
    return { kind: "faulty", faults: [inCatalogue({ path: "", message })] };
  }
}

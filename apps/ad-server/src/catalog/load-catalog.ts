import { readFileSync, statSync } from "node:fs";
import { Worker } from "node:worker_threads";
import { type FieldFault, faultsOf } from "@adrelay/contract";
import { CORE_SCHEMA, load as parseYaml } from "js-yaml";
import { z } from "zod";
import { type Ad, catalogFormSchema } from "./ad.ts";
import { asciiLandingUrl } from "./landing-url.ts";
import { screenCreative } from "./screening/screen-creative.ts";

export type CatalogResult =
  | { readonly kind: "ok"; readonly ads: readonly Ad[] }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** What the thread sends. Ads come in chunks, so that receiving them never blocks the event loop for long. */
export type ThreadMessage =
  | { readonly kind: "ads"; readonly ads: readonly Ad[] }
  | { readonly kind: "end" }
  | { readonly kind: "faulty"; readonly faults: readonly FieldFault[] };

/** Far more than a catalogue needs. A file of this size is still read within seconds. */
const FILE_BYTES_MAX = 64 * 1024 * 1024;

const READ_TIMEOUT_MS = 60_000;
const THREAD_HEAP_MB = 1024;

/** Reads the ads of a YAML file. Every fault has its place in the file: `3.id` is the id of the fourth ad. */
export function loadCatalog(file: string): CatalogResult {
  const read = readYaml(file);
  return read.kind === "ok" ? parseCatalog(read.value) : read;
}

/** As loadCatalog, but on a separate thread, because a long file takes seconds. It never rejects. */
export function loadCatalogOnThread(file: string): Promise<CatalogResult> {
  const worker = new Worker(new URL("./load-catalog-thread.ts", import.meta.url), {
    workerData: file,
    resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB },
  });
  return new Promise((resolve) => {
    const ads: Ad[] = [];
    const settle = (result: CatalogResult) => {
      clearTimeout(timer);
      resolve(result);
      void worker.terminate();
    };
    const fail = (message: string) => settle({ kind: "faulty", faults: [{ path: "CATALOG_FILE", message }] });
    const timer = setTimeout(() => fail("took too long to read"), READ_TIMEOUT_MS);
    worker.on("message", (message: ThreadMessage) => {
      switch (message.kind) {
        case "ads":
          ads.push(...message.ads);
          return;
        case "end":
          settle({ kind: "ok", ads });
          return;
        case "faulty":
          settle(message);
          return;
        default:
          message satisfies never;
      }
    });
    worker.on("error", (error: unknown) => fail(error instanceof Error ? error.message : "can't be read"));
    worker.on("exit", () => fail("can't be read: the thread that reads it ended"));
  });
}

/** Checks the content of a catalogue file. It returns all faults, not only the first. */
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
/** The part of an ad that can be screened even if the rest of it has faults. */
const creativeSchema = z.object({
  product_name: text,
  advertiser: text,
  description: text,
  keywords: z.array(text).catch([]),
  landing_url: text.transform((written) => asciiLandingUrl(written) ?? written),
});

function screenedFaults(ads: readonly unknown[]): FieldFault[] {
  return ads.flatMap((ad, index) => {
    const creative = creativeSchema.safeParse(ad);
    return creative.success
      ? screenCreative(creative.data).map(({ path, message }) => ({ path: `${index}.${path}`, message }))
      : [];
  });
}

/** Repeated ids, also among ads that have other faults. */
function repeatedIds(ads: readonly unknown[]): FieldFault[] {
  const ids = ads.map((ad): unknown => Object(ad)["id"]);
  const seen = new Set<unknown>();
  return ids.flatMap((id, index) => {
    const isRepeated = typeof id === "string" && seen.has(id);
    seen.add(id);
    return isRepeated ? [{ path: `${index}.id`, message: "is the id of an earlier ad too" }] : [];
  });
}

/** Adds the setting's name, since faults of the catalogue are reported like those of settings. */
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

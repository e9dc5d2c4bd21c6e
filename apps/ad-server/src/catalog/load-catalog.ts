import { Worker } from "node:worker_threads";
import type { FieldFault } from "@adrelay/contract";
import { z } from "zod";
import { type Ad, catalogFormSchema } from "./ad.ts";
import { parseCatalogYaml, readCatalogText } from "./catalog-file.ts";
import { type CatalogFault, placeFaults } from "./catalog-places.ts";
import { asciiLandingUrl } from "./landing-url.ts";
import { parsePlainly } from "./plain-faults.ts";
import { screenCreative } from "./screening/screen-creative.ts";

export type CatalogResult =
  | { readonly kind: "ok"; readonly ads: readonly Ad[] }
  | {
      readonly kind: "faulty";
      readonly faults: readonly CatalogFault[];
      /** If true, the same file may be readable at the next attempt, as after an error of the disk. */
      readonly mayPass?: boolean;
    };

/** What the thread sends. Ads come in chunks, so that receiving them never blocks the event loop for long. */
export type ThreadMessage =
  | { readonly kind: "ads"; readonly ads: readonly Ad[] }
  | { readonly kind: "end" }
  | Exclude<CatalogResult, { kind: "ok" }>;

const READ_TIMEOUT_MS = 60_000;
const THREAD_HEAP_MB = 1024;

/** Reads the ads of a YAML file. Every fault has its place in the file: `3.id` is the id of the fourth ad. */
export function loadCatalog(file: string): CatalogResult {
  const read = readCatalogText(file);
  if (read.kind === "unreadable") {
    return { ...faultOf(`${file} ${read.why}`), mayPass: read.mayPass };
  }
  const parsed = parseCatalogYaml(read.text);
  if (parsed.kind === "faulty") {
    const { line, message } = parsed;
    return { kind: "faulty", faults: [{ path: "CATALOG_FILE", line, message: `${file}: ${message}` }] };
  }
  const checked = checkAds(parsed.value);
  return "ads" in checked
    ? { kind: "ok", ads: checked.ads }
    : { kind: "faulty", faults: placeFaults(checked.faults, read.text, parsed.value).map(inCatalogue) };
}

/** A fault of the file as a whole. */
function faultOf(message: string): Exclude<CatalogResult, { kind: "ok" }> {
  return { kind: "faulty", faults: [{ path: "CATALOG_FILE", message }] };
}

/** As loadCatalog, but on a separate thread, because a long file takes seconds. It never rejects. */
export async function loadCatalogOnThread(file: string): Promise<CatalogResult> {
  const worker = startThread(file);
  if (worker === undefined) {
    return { ...faultOf(`${file} can't be read: no thread can be started for it`), mayPass: true };
  }
  return new Promise((resolve) => {
    const ads: Ad[] = [];
    const settle = (result: CatalogResult) => {
      clearTimeout(timer);
      resolve(result);
      void worker.terminate();
    };
    const fail = (why: string) => settle(faultOf(`${file} can't be read: ${why}`));
    const timer = setTimeout(() => fail("it takes too long"), READ_TIMEOUT_MS);
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
    worker.on("error", (error: unknown) => fail(error instanceof Error ? error.message : "an unknown error"));
    worker.on("exit", () => fail("the thread that reads it ended"));
  });
}

function startThread(file: string): Worker | undefined {
  try {
    return new Worker(new URL("./load-catalog-thread.ts", import.meta.url), {
      workerData: file,
      resourceLimits: { maxOldGenerationSizeMb: THREAD_HEAP_MB },
    });
  } catch {
    return undefined;
  }
}

/** Ten times as many as a large catalogue has. The faults of this many ads still fit into memory. */
const ADS_MAX = 100_000;

/** Checks the content of a catalogue file. It returns all faults, not only the first. */
export function parseCatalog(value: unknown): CatalogResult {
  const checked = checkAds(value);
  return "ads" in checked
    ? { kind: "ok", ads: checked.ads }
    : { kind: "faulty", faults: checked.faults.map(inCatalogue) };
}

function checkAds(
  value: unknown,
): { readonly ads: readonly Ad[] } | { readonly faults: readonly FieldFault[] } {
  if (Array.isArray(value) && value.length > ADS_MAX) {
    return { faults: [{ path: "", message: "must hold at most 100,000 ads" }] };
  }
  const parsed = parsePlainly(catalogFormSchema, value);
  const faults = [
    ...("faults" in parsed ? parsed.faults : []),
    ...(Array.isArray(value) ? [...screenedFaults(value), ...repeatedIds(value)] : []),
  ];
  return "data" in parsed && faults.length === 0 ? { ads: parsed.data } : { faults };
}

/** The longest text that the schema accepts. It refuses longer ones, so screening them would only cost time. */
const TEXT_CHARS_MAX = 2048;
const text = z.string().max(TEXT_CHARS_MAX).catch("");
/** The part of an ad that can be screened even if the rest of it has faults. */
const creativeSchema = z.object({
  product_name: text,
  advertiser: text,
  description: text,
  keywords: z.array(text).catch([]),
  negative_keywords: z.array(text).catch([]),
  negative_topics: z.array(text).catch([]),
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
function inCatalogue(fault: CatalogFault): CatalogFault {
  return { ...fault, path: fault.path === "" ? "CATALOG_FILE" : `CATALOG_FILE ${fault.path}` };
}

/** Faults of the catalogue's file and its disk: at the start, and while the server runs. */
import { execFileSync } from "node:child_process";
import { randomUUID } from "node:crypto";
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  renameSync,
  rmSync,
  symlinkSync,
  truncateSync,
  utimesSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { AppStartError, eventually, fetchMetrics, startApp, sumOf } from "@adrelay/testkit";
import { pino } from "pino";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CatalogWatch } from "../src/catalog/catalog-watch.ts";
import { CurrentCatalog } from "../src/catalog/current-catalog.ts";
import { stateAtStart } from "../src/catalog/file-state.ts";
import { type CatalogResult, parseCatalog } from "../src/catalog/load-catalog.ts";
import { loadPromptRules } from "../src/injection/decide-injection.ts";
import { NegativeKeywords } from "../src/relevance/negative-keywords.ts";
import { NegativeTopics } from "../src/relevance/negative-topics.ts";
import { PLAIN_AD } from "../testdata/plain-ad.ts";
import { SHIPPED_MODEL } from "../testdata/shipped-model.ts";
import { callerOf, KEY, PROMPTS, startAdServer, type TestAdServer } from "./ad-server.ts";

const SHOE = {
  ...PLAIN_AD,
  id: "velmora-drift",
  product_name: "Velmora Drift",
  category: "running-shoes",
  keywords: ["running shoes", "marathon"],
  bid_cpm_micros: 3_100_000,
  budget_micros: 40_000_000,
};
const textOf = (product: string) => JSON.stringify([{ ...SHOE, product_name: product }]);

const folder = mkdtempSync(join(tmpdir(), "adrelay-catalog-faults-"));
const file = join(folder, "catalog.yaml");
const stops: (() => Promise<void>)[] = [];

let server: TestAdServer;
beforeAll(async () => {
  writeFileSync(file, textOf("Velmora Drift"));
  server = await startAdServer({ CATALOG_FILE: file, CATALOG_RELOAD_INTERVAL: "50ms" });
});
afterAll(async () => {
  await Promise.all([...stops.map((stop) => stop()), server.dispose()]);
  rmSync(folder, { recursive: true });
});

const list = (member: string) => `[${Array.from({ length: 10 }, () => member).join(",")}]`;
const BOMB = Array.from({ length: 12 }, (_, n) => `- &a${n} ${list(n === 0 ? "1" : `*a${n - 1}`)}\n`).join(
  "",
);

/** Makes something at a path that is no catalogue. */
const FAULTS: readonly (readonly [what: string, make: (path: string) => void, why: string])[] = [
  ["nothing", () => {}, "ENOENT"],
  ["a folder", (path) => mkdirSync(path), "is a folder"],
  ["a fifo", (path) => execFileSync("mkfifo", [path]), "is no regular file"],
  ["a circle of links", (path) => symlinkSync(path, path), "ELOOP"],
  ["a device", (path) => symlinkSync("/dev/zero", path), "is no regular file"],
  ["a huge file", (path) => writeFileSync(path, "") ?? truncateSync(path, 2 ** 40), "is larger than"],
  ["NUL bytes", (path) => writeFileSync(path, Buffer.alloc(512)), "NUL byte"],
  ["UTF-16", (path) => writeFileSync(path, `\ufeff${textOf("x")}`, "utf16le"), "UTF-16"],
  ["a bomb of aliases", (path) => writeFileSync(path, BOMB), "2,000,000 values"],
  ["an empty file", (path) => writeFileSync(path, ""), "empty"],
  ...(existsSync("/proc/self/mem")
    ? [["an error of the disk", (path: string) => symlinkSync("/proc/self/mem", path), "EIO"] as const]
    : []),
];

test.each(FAULTS)(
  "%s at the start is one line that names the file, and exit code 2",
  async (_what, make, why) => {
    const path = join(folder, randomUUID());
    make(path);
    const outcome = await startApp("ad-server", { AD_SERVER_API_KEYS: KEY, CATALOG_FILE: path }).catch(
      (error: unknown) => error,
    );
    expect(outcome).toBeInstanceOf(AppStartError);
    expect(outcome).toMatchObject({ exit: 2 });
    const lines = outcome instanceof AppStartError ? outcome.stderr.trim().split("\n") : [];
    expect(lines.filter((line) => line.includes("CATALOG_FILE"))).toEqual([expect.stringContaining(path)]);
    expect(lines).toHaveLength(2);
    expect(lines[1]).toContain(why);
  },
);

const refusals = () => server.app().logs.filter((line) => line["event"] === "catalog_refused");
const productNow = async () => (await callerOf(server).start(PROMPTS.ok)).body["product_name"];
const refusedNow = async () =>
  sumOf(await fetchMetrics(server.opsUrl()), "adserver_catalog_reloads_total", { outcome: "refused" });

test.each(FAULTS.map((fault, index) => [...fault, index] as const))(
  "%s in place of the file is logged, and the catalogue stays in force until a good file comes",
  async (_what, make, why, index) => {
    const before = refusals().length;
    const inForce = await productNow();
    rmSync(file, { recursive: true });
    make(file);
    await eventually(() => expect(JSON.stringify(refusals().slice(before))).toContain(why));
    expect(refusals().at(-1)).toMatchObject({ file, fault_count: 1 });
    expect(await productNow()).toBe(inForce);
    expect(await refusedNow()).toBe(refusals().length);
    const good = join(folder, "good.yaml");
    writeFileSync(good, textOf(`Velmora Number${index}`));
    rmSync(file, { recursive: true, force: true });
    renameSync(good, file);
    await eventually(async () => expect(await productNow()).toBe(`Velmora Number${index}`));
  },
);

test("a folder that vanishes is logged once, and its file is read when it is back", async () => {
  const before = refusals().length;
  renameSync(folder, `${folder}-away`);
  await eventually(() => expect(refusals()).toHaveLength(before + 1));
  renameSync(`${folder}-away`, folder);
  writeFileSync(file, textOf("Velmora Back"));
  await eventually(async () => expect(await productNow()).toBe("Velmora Back"));
});

/** Watches a file whose reads have these results, the last one again and again. It is read, and then replaced or not. */
async function watchedFrom(replace: (path: string) => void, results: readonly CatalogResult[]) {
  const path = join(folder, randomUUID());
  writeFileSync(path, "");
  const readState = stateAtStart(path);
  replace(path);
  const outcomes: string[] = [];
  const logged: string[] = [];
  let reads = 0;
  const current = await CurrentCatalog.open(adsOf(SHOE), { now: () => 0, buildRules });
  const watch = new CatalogWatch({
    file: path,
    readState,
    intervalMs: 5,
    current,
    log: pino({ base: null }, { write: (line) => logged.push(line) }),
    read: async () => {
      reads += 1;
      return results[reads - 1] ?? results.at(-1) ?? failed("has no result", false);
    },
    onOutcome: (outcome) => outcomes.push(outcome),
  });
  stops.push(() => watch.stop());
  watch.start();
  return { path, outcomes, logged, current, reads: () => reads };
}

const watched = (...results: readonly CatalogResult[]) => watchedFrom(() => {}, results);

async function buildRules() {
  const promptRules = await loadPromptRules(SHIPPED_MODEL);
  return {
    ...promptRules,
    relevance: { rank: () => [] },
    negativeKeywords: NegativeKeywords.of([]),
    negativeTopics: await NegativeTopics.build([], promptRules.model),
    floorCpmMicros: 0,
  };
}

function adsOf(...ads: object[]) {
  const parsed = parseCatalog(ads);
  return parsed.kind === "ok" ? parsed.ads : [];
}

function failed(message: string, mayPass: boolean): CatalogResult {
  return { kind: "faulty", faults: [{ path: "CATALOG_FILE", message }], mayPass };
}

test("a file that an older one replaces during the start is read", async () => {
  const replace = (path: string) => {
    writeFileSync(`${path}-older`, "older");
    utimesSync(`${path}-older`, 1, 1);
    renameSync(`${path}-older`, path);
  };
  const watch = await watchedFrom(replace, [{ kind: "ok", ads: adsOf({ ...SHOE, id: "new" }) }]);
  await eventually(() => expect(watch.outcomes).toEqual(["reloaded"]));
  expect(watch.reads()).toBe(1);
});

test("after an error of the disk the file is read again until it succeeds", async () => {
  const error = failed("i/o error", true);
  const watch = await watched(error, error, error, { kind: "ok", ads: adsOf({ ...SHOE, id: "new" }) });
  writeFileSync(watch.path, "changed");
  await eventually(() => expect(watch.outcomes).toEqual(["refused", "reloaded"]));
  expect(watch.current.now.ads.map(({ id }) => id)).toEqual(["new"]);
  expect(watch.logged.filter((line) => line.includes("catalog_refused"))).toHaveLength(1);
  expect(watch.reads()).toBe(4);
});

test("a file that is refused for its content isn't read again until it changes", async () => {
  const watch = await watched(failed("has a fault", false));
  writeFileSync(watch.path, "changed");
  await eventually(() => expect(watch.outcomes).toEqual(["refused"]));
  writeFileSync(watch.path, "changed again");
  await eventually(() => expect(watch.outcomes).toEqual(["refused", "refused"]));
  expect(watch.reads()).toBe(2);
});

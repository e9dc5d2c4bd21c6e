import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { API_KEY_HEADER, INJECTION_PATH } from "@adrelay/contract";
import { fetchMetrics, sumOf } from "@adrelay/testkit";
import { afterAll, beforeAll, expect, test } from "vitest";
import {
  callerOf,
  get,
  injectionOf,
  KEY,
  OTHER_KEY,
  PROMPTS,
  post,
  startAdServer,
  type TestAdServer,
} from "./ad-server.ts";

const OPERATOR_KEY = "key-of-the-operator";
/** The ad bids 4,200 micros for one impression. As the only ad in its auction it pays the floor. */
const FLOOR_MICROS = 2000;
const AD = {
  id: "drift",
  product_name: "Velmora Drift",
  advertiser: '=HYPERLINK("x"), "Ltd"',
  category: "running-shoes",
  description: "A trainer for running.",
  keywords: ["running shoes", "marathon"],
  landing_url: "https://velmora.example/",
  bid_cpm_micros: 4_200_000,
  budget_micros: 3 * FLOOR_MICROS,
};

const folder = mkdtempSync(join(tmpdir(), "reports-"));
let server: TestAdServer;
beforeAll(async () => {
  const catalog = join(folder, "catalog.yaml");
  writeFileSync(catalog, JSON.stringify([AD]));
  server = await startAdServer({
    CATALOG_FILE: catalog,
    FLOOR_CPM_MICROS: String(FLOOR_MICROS * 1000),
    AD_SERVER_REPORT_KEY: OPERATOR_KEY,
  });
  const caller = callerOf(server);
  const used = await caller.served();
  await caller.acknowledge(used.id, used.product);
  const unused = await caller.served();
  await caller.acknowledge(unused.id, "Any pair will do.");
  await caller.served();
  await caller.start(PROMPTS.rejected);
  await caller.start(PROMPTS.no_fill);
  // The other publisher gets the last of the budget, and its second request gets no ad.
  for (let request = 0; request < 2; request += 1) {
    await post(`${server.url()}${INJECTION_PATH}`, injectionOf(PROMPTS.ok), { [API_KEY_HEADER]: OTHER_KEY });
  }
});
afterAll(async () => {
  await server.dispose();
  rmSync(folder, { recursive: true });
});

const report = (query: string, key?: string) => get(`${server.url()}/reports/spend${query}`, key);
const fetchText = async (path: string, accept: string) => {
  const headers = { [API_KEY_HEADER]: OPERATOR_KEY, Accept: accept };
  const response = await fetch(`${server.url()}${path}`, { headers });
  return { type: response.headers.get("content-type"), text: await response.text() };
};

const OWN = { requests: 5, injected: 3, rejected: 1, no_fill: 1, ok: 1, no_ad_used: 1, pending: 1 };

test("a publisher sees its own numbers, exact to the micro", async () => {
  const { status, body } = await report("");
  expect(status).toBe(200);
  const day = new Date().toISOString().slice(0, 10);
  expect(body).toMatchObject({ from: day, to: day, group_by: "ad" });
  expect(body["totals"]).toEqual({
    ...OWN,
    expired: 0,
    unpaid: 0,
    disclosed: 0,
    spent_micros: FLOOR_MICROS,
    reserved_micros: FLOOR_MICROS,
    foreign_links: 0,
  });
  expect(body["rows"]).toMatchObject([
    { ad: null, requests: 2, rejected: 1, no_fill: 1, spent_micros: 0 },
    { ad: "drift", requests: 3, injected: 3, ok: 1, spent_micros: FLOOR_MICROS },
  ]);
});

test("the operator sees every publisher", async () => {
  const { body } = await report("?group_by=publisher", OPERATOR_KEY);
  const { body: other } = await report("?group_by=publisher", OTHER_KEY);
  expect(body["rows"]).toHaveLength(2);
  expect(other["rows"]).toHaveLength(1);
  expect(body["totals"]).toMatchObject({
    requests: 7,
    injected: 4,
    no_fill: 2,
    reserved_micros: 2 * FLOOR_MICROS,
  });
});

test("the operator sees what is left of each budget, but a publisher doesn't", async () => {
  const { body } = await get(`${server.url()}/reports/budgets`, OPERATOR_KEY);
  expect(body["rows"]).toEqual([
    {
      ad: "drift",
      advertiser: AD.advertiser,
      budget_micros: 3 * FLOOR_MICROS,
      spent_micros: FLOOR_MICROS,
      reserved_micros: 2 * FLOOR_MICROS,
      left_micros: 0,
    },
  ]);
  expect((await get(`${server.url()}/reports/budgets`, KEY)).status).toBe(401);
});

test.each(["", "nobody"])("the key %j is 401", async (key) => {
  expect((await report("", key)).status).toBe(401);
});

test.each([
  ["from", "?from=yesterday"],
  ["from", "?from=2026-02-30"],
  ["from", "?from=2026-06-02&to=2026-06-01"],
  ["to", "?from=2026-01-01&to=2026-04-03"],
  ["to", "?to=2026-06-01&to=2026-06-02"],
  ["group_by", "?group_by=session"],
])("a wrong %s is 422 with its path: %s", async (path, query) => {
  const { status, body } = await report(query);
  expect(status).toBe(422);
  expect(body).toMatchObject({ code: "validation_failed", errors: [{ path }] });
});

test("an unknown query parameter is 422", async () => {
  expect((await report("?grop_by=ad")).status).toBe(422);
});

test("a report of days without requests is empty", async () => {
  const { body } = await report("?from=2020-01-01&to=2020-01-31");
  expect(body).toMatchObject({ rows: [], totals: { requests: 0, spent_micros: 0 } });
});

test("a report with only an end covers that day", async () => {
  expect((await report("?to=2020-01-31")).body).toMatchObject({ from: "2020-01-31", to: "2020-01-31" });
});

test.each([
  ["/reports/spend.csv?group_by=advertiser", "*/*"],
  ["/reports/spend?group_by=advertiser", "text/csv"],
])("%s for %s is CSV with formulas made harmless", async (path, accept) => {
  const { type, text } = await fetchText(path, accept);
  expect(type).toContain("text/csv");
  const lines = text.split("\r\n");
  expect(lines[0]).toBe(
    "advertiser,requests,injected,rejected,no_fill,ok,no_ad_used,expired,pending,unpaid,disclosed,spent_micros,reserved_micros,foreign_links",
  );
  expect(lines[1]).toBe(",3,0,1,2,0,0,0,0,0,0,0,0,0");
  expect(lines[2]).toBe(`"'=HYPERLINK(""x""), ""Ltd""",4,4,0,0,1,1,0,2,0,0,2000,4000,0`);
  expect(lines).toHaveLength(4);
});

test("a POST is 405, and the last slash of the path is optional", async () => {
  expect((await post(`${server.url()}/reports/spend`, {})).status).toBe(405);
  expect((await get(`${server.url()}/reports/spend/`)).status).toBe(200);
});

test("the metrics have the money spent and the outcomes of auctions", async () => {
  const metrics = await fetchMetrics(server.opsUrl());
  expect(sumOf(metrics, "adserver_spend_micros_total")).toBe(FLOOR_MICROS);
  expect(sumOf(metrics, "adserver_reserved_micros")).toBe(2 * FLOOR_MICROS);
  expect(sumOf(metrics, "adserver_auctions_total", { outcome: "won" })).toBe(4);
  expect(sumOf(metrics, "adserver_auctions_total", { outcome: "no_budget" })).toBe(1);
});

test("reports survive a kill -9 of the ad server", async () => {
  const before = (await report("", OPERATOR_KEY)).body;
  await server.crashAndRestart();
  expect((await report("", OPERATOR_KEY)).body).toEqual(before);
});

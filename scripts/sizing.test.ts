/** The sums of docs/sizing.md: they follow from its own figures and from the defaults of the settings. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { loadGatewayConfig } from "../apps/gateway/src/config.ts";
import { loadWorkerConfig } from "../apps/worker/src/config.ts";

const text = readFileSync(new URL("../docs/sizing.md", import.meta.url), "utf8");
const env = { API_KEYS: "key-for-this-test", PROVIDER_API_KEY: "k" };
const [gateway, worker] = [loadGatewayConfig(env), loadWorkerConfig(env)];

/** The default of a setting, in milliseconds. */
const defaultOf = (name: string): unknown => {
  const settings = [gateway, worker].map((loaded) => (loaded.kind === "ok" ? loaded.config.settings : {}));
  return Object.assign({}, ...settings)[name];
};

const HOUR_SECONDS = 3600;
const UNITS_MS: Record<string, number> = { min: 60_000, h: 3_600_000, d: 86_400_000 };
/** Of each three injections, two get no ad; an acknowledgment's body has 2 kB. */
const WITHOUT_AD = 2;
const BODY_BYTES = 2000;

const bytesOf = (state: string): number =>
  Number(new RegExp(`^\\| ${state} \\| ([\\d,]+) B`, "m").exec(text)?.[1]?.replaceAll(",", ""));

const said = [...text.matchAll(/`([A-Z_]+)` \((\d+) (min|h|d)\)/g)].map(
  ([, name = "", count, unit = ""]) => [name, Number(count) * (UNITS_MS[unit] ?? 0)] as const,
);

test.each(said)("the sizing guide has the default of %s", (name, valueMs) => {
  expect(valueMs).toBe(defaultOf(name));
});

const rows = [...text.matchAll(/^\| (\d+) \| ([\d.]+) GB \| ([\d.]+) GB \| ([\d.]+) GB \|$/gm)].map((row) =>
  row.slice(1).map(Number),
);

test("the sums for each rate follow from the figures of one entry", () => {
  const retentionSeconds = Number(defaultOf("DELIVERED_RETENTION")) / 1000;
  const steady = retentionSeconds * (bytesOf("delivered") + WITHOUT_AD * bytesOf("without an ad"));
  const waiting = bytesOf("queued or dead, besides its body") + BODY_BYTES;
  const outages = [HOUR_SECONDS, Number(defaultOf("DELIVERY_MAX_AGE")) / 1000];
  expect(rows.map(([rate]) => rate)).toEqual([1, 10, 100]);
  for (const [rate = 0, ...gigabytes] of rows) {
    const bytes = [steady, ...outages.map((seconds) => seconds * waiting)].map((each) => each * rate);
    expect(gigabytes).toEqual(bytes.map((each) => Number((each / 1e9).toPrecision(2))));
  }
});

test("the month of delivered entries that the guide names is what it costs", () => {
  const monthBytes = 100 * 30 * 86_400 * bytesOf("delivered");
  expect(text).toContain(`${Math.round(monthBytes / 1e9)} GB of it for delivered`);
});

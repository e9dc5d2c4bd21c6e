import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { AD_SERVER_SETTINGS, loadAdServerConfig } from "./config.ts";

const [A, B, C] = ["key-of-publisher-a", "key-of-publisher-b", "key-of-publisher-c"] as const;

test("the README names every setting", () => {
  const readme = readFileSync(new URL("../README.md", import.meta.url), "utf8");
  const missing = Object.keys(AD_SERVER_SETTINGS).filter((name) => !readme.includes(`\`${name}\``));
  expect(missing).toEqual([]);
});

test("only the keys must be set, and all else has defaults", () => {
  expect(loadAdServerConfig({ AD_SERVER_API_KEYS: `${A}, ${B},`, AD_SERVER_FAULTS: " " })).toMatchObject({
    kind: "ok",
    config: { apiKeys: [[A], [B]], host: "127.0.0.1", port: 8090, faultRules: [], ads: { length: 64 } },
  });
});

test("keys with a bar between them are those of one publisher", () => {
  expect(loadAdServerConfig({ AD_SERVER_API_KEYS: `${A} | ${B}, ${C}, ${C}` })).toMatchObject({
    config: { apiKeys: [[A, B], [C], [C]] },
  });
});

test("faulty keys are named beside a faulty report key", () => {
  const env = { AD_SERVER_API_KEYS: '"a,b"', AD_SERVER_REPORT_KEY: "'a'" };
  expect(loadAdServerConfig(env)).toMatchObject({
    faults: [{ path: expect.stringContaining("AD_SERVER_API_KEYS") }, { path: "AD_SERVER_REPORT_KEY" }],
  });
});

test.each([`${A}|`, `|${A}`, `${A}|${B},${B}`, `${A}|${B},${C}|${B}`, `${A},${B}|${A}`])(
  "the keys %s are refused",
  (keys) => {
    expect(loadAdServerConfig({ AD_SERVER_API_KEYS: keys })).toMatchObject({
      kind: "faulty",
      faults: [{ path: expect.stringMatching(/^AD_SERVER_API_KEYS/) }],
    });
  },
);

test.each([
  ["AD_SERVER_REPORT_KEY", B],
  ["ACK_WINDOW", "31d"],
  ["FLOOR_CPM_MICROS", "0"],
  ["PACING", "fast"],
  ["PACING_DAYS", "0"],
])("the setting %s refuses the value %s", (name, value) => {
  expect(loadAdServerConfig({ AD_SERVER_API_KEYS: `${A}, ${B}`, [name]: value })).toMatchObject({
    kind: "faulty",
    faults: [{ path: name }],
  });
});

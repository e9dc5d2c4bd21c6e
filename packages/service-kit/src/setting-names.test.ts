import { expect, test } from "vitest";
import { misspeltNames } from "./setting-names.ts";

const SETTINGS = [
  "REDIS_TLS_CA_FILE",
  "GATEWAY_PORT",
  "API_KEYS",
  "REDIS_URL",
  "ACK_DEADLINE_MS",
  "PROVIDER_API_KEY",
  "HTTP_PROXY",
  "NO_PROXY",
];

test.each([
  ["API_KEY", "API_KEYS"],
  ["REDIS_URI", "REDIS_URL"],
  ["REDSI_URL", "REDIS_URL"],
  ["redis_ur", "REDIS_URL"],
  ["ACK_DEADLINE", "ACK_DEADLINE_MS"],
  ["ACK_DEADLINE_SECONDS", "ACK_DEADLINE_MS"],
  ["PROVIDER_APIKEY", "PROVIDER_API_KEY"],
  ["PROVIDER_API_KEYS", "PROVIDER_API_KEY"],
  ["PROVIDER_KEY", "PROVIDER_API_KEY"],
  ["REDIS_TLS_CA", "REDIS_TLS_CA_FILE"],
  ["gateway_port", "GATEWAY_PORT"],
])("%s is told, with %s as the nearest setting", (name, nearest) => {
  expect(misspeltNames([name], SETTINGS)).toEqual([{ name, nearest }]);
});

test.each(["REDIS_URL", "http_proxy", "ALL_PROXY", "ftp_proxy", "PATH", "HOME", "REDIS_HOST", "API_TOKEN"])(
  "%s is known, or near nothing",
  (name) => {
    expect(misspeltNames([name], SETTINGS)).toEqual([]);
  },
);

test("a variable that another setting names isn't told", () => {
  expect(misspeltNames(["A_PROVIDER_API_KEY"], SETTINGS)).toHaveLength(1);
  expect(misspeltNames(["A_PROVIDER_API_KEY"], SETTINGS, ["A_PROVIDER_API_KEY"])).toEqual([]);
});

import { expect, test } from "vitest";
import { stopLimitMs } from "./app-settings.ts";
import { PartError } from "./part-error.ts";

test.each([
  ["proxy", { PROXY_DRAIN_MS: "60s", SHUTDOWN_DELAY_MS: "5s", SHUTDOWN_TIMEOUT_MS: "20s" }, 88_000],
  ["gateway", { PROXY_DRAIN_MS: "60s", SHUTDOWN_DELAY_MS: "5s", SHUTDOWN_TIMEOUT_MS: "20s" }, 28_000],
  ["proxy", {}, 88_000],
  ["worker", {}, 28_000],
] as const)("a %s with %j may take its own time to stop", (app, settings, limitMs) => {
  expect(stopLimitMs(app, settings)).toBe(limitMs);
});

test("settings of a stop that can't be used are named, all of them, with what is wrong", () => {
  const limit = () => stopLimitMs("proxy", { PROXY_DRAIN_MS: "soon", SHUTDOWN_DELAY_MS: "-1" });
  expect(limit).toThrow(PartError);
  expect(limit).toThrow(/^SHUTDOWN_DELAY_MS: .*\nPROXY_DRAIN_MS: [^\n]*$/);
});

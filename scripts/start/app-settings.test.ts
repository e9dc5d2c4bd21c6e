import { expect, test } from "vitest";
import { stopLimitMs } from "./app-settings.ts";

test.each([
  ["proxy", { PROXY_DRAIN_MS: "60s", SHUTDOWN_DELAY_MS: "5s", SHUTDOWN_TIMEOUT_MS: "20s" }, 88_000],
  ["gateway", { PROXY_DRAIN_MS: "60s", SHUTDOWN_DELAY_MS: "5s", SHUTDOWN_TIMEOUT_MS: "20s" }, 28_000],
  ["proxy", {}, 88_000],
  ["worker", {}, 28_000],
] as const)("a %s with %j may take its own time to stop", (app, settings, limitMs) => {
  expect(stopLimitMs(app, settings)).toBe(limitMs);
});

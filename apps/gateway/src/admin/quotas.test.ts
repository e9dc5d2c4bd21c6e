import type { IntakeRules } from "@adrelay/store";
import { expect, test } from "vitest";
import { checkQuotas, viewOfQuotas } from "./quotas.ts";

const LIMITS: IntakeRules["limits"] = {
  queued_bytes: 1000,
  dead_bytes: 1000,
  unknown_bytes: Number.POSITIVE_INFINITY,
};
const rulesOf = () => ({ limits: LIMITS });

test("a quota of one gateway's requests that refused something is shown without bytes", () => {
  const refusals = [
    { publisher: "acme", quota: "requests_per_second", count: 150 },
    { publisher: "acme", quota: "injections_in_flight", count: 0 },
    { publisher: "acme", quota: "queued_bytes", count: 3 },
    { publisher: "globe", quota: "bytes_in_flight", count: 0 },
  ];
  const shown = { publisher: "acme", used_bytes: null, limit_bytes: null };
  expect(viewOfQuotas([], refusals, rulesOf)).toEqual([
    { publisher: "acme", quota: "queued_bytes", used_bytes: 0, limit_bytes: 1000, refused: 3 },
    { ...shown, quota: "requests_per_second", refused: 150 },
  ]);
});

test.each([
  [[{ publisher: "acme", label: "queued_bytes", value: 899 }], "ok", /^no publisher/],
  [
    [{ publisher: "acme", label: "queued_bytes", value: 900 }],
    "warn",
    /^in use: acme 90 % of queued_bytes\./,
  ],
  [[{ publisher: "acme", label: "dead_bytes", value: 1560 }], "warn", /^in use: acme 156 % of dead_bytes\./],
  [[{ publisher: "acme", label: "unknown_bytes", value: 1e9 }], "ok", /^no publisher/],
])("the doctor finds a quota that is nearly used up in %j: %s", (storedBytes, status, detail) => {
  expect(checkQuotas({ storedBytes }, rulesOf)).toMatchObject({
    name: "quotas",
    status,
    detail: expect.stringMatching(detail),
  });
});

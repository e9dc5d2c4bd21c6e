import fc from "fast-check";
import { expect, test } from "vitest";
import { classifyInjection, FALLBACK_REASONS } from "./injection.ts";

const ID = "0b0f7a52-5c1c-4a0b-9a55-2f5a5f7b8f10";
const filled = {
  ad_request_id: ID,
  ad_response_id: ID.toUpperCase(),
  status: "ok",
  success: true,
  execution_time_ms: 1.5,
  enhanced_prompt: "p",
  product_name: "n",
};
const unfilled = { ...filled, status: "x", success: false, enhanced_prompt: null, product_name: null };
const answer = (status: number, body?: unknown) =>
  classifyInjection({ kind: "answered", status, body, retryAfter: undefined });

test.each([
  [200, filled, { kind: "enhancement", outcome: "ok", adResponseId: ID }],
  [201, unfilled, { kind: "enhancement", outcome: "rejected", adResponseId: ID }],
  [202, unfilled, { kind: "enhancement", outcome: "no_fill", adResponseId: ID }],
  [200, unfilled, { kind: "fallback", reason: "malformed_answer" }],
  [202, filled, { kind: "fallback", reason: "malformed_answer" }],
  [200, { ...filled, enhanced_prompt: "" }, { kind: "fallback", reason: "malformed_answer" }],
  [200, { ...filled, ad_response_id: "1" }, { kind: "fallback", reason: "malformed_answer" }],
  [200, "<html>", { kind: "fallback", reason: "malformed_answer" }],
  [204, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [302, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [400, { code: "validation_failed" }, { kind: "callers_fault" }],
  [400, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [401, undefined, { kind: "fallback", reason: "unauthorized" }],
  [403, undefined, { kind: "fallback", reason: "unauthorized" }],
  [404, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [409, { code: "validation_failed" }, { kind: "callers_fault" }],
  [409, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [422, { code: "validation_failed" }, { kind: "callers_fault" }],
  [422, undefined, { kind: "fallback", reason: "unexpected_status" }],
  [429, undefined, { kind: "fallback", reason: "rate_limited" }],
  [500, undefined, { kind: "fallback", reason: "provider_error" }],
])("an injection answered %d with %j is %j", (status, body, expected) => {
  expect(answer(status, body)).toEqual(expected);
});

test.each([
  ["timeout", "timeout"],
  ["unreachable", "unreachable"],
  ["dns_failed", "unreachable"],
  ["certificate_invalid", "unreachable"],
  ["proxy_failed", "unreachable"],
  ["connection_lost", "connection_lost"],
  ["answer_too_large", "malformed_answer"],
] as const)("a call that ended as %s is a fallback for the reason %s", (code, reason) => {
  const reply = { kind: "failed", stage: "after_send", code } as const;
  expect(classifyInjection(reply)).toEqual({ kind: "fallback", reason });
});

test("any status with any body has a class with a known reason", () => {
  fc.assert(
    fc.property(fc.integer({ min: 100, max: 999 }), fc.jsonValue(), (status, body) => {
      const verdict = answer(status, body);
      expect(verdict.kind !== "fallback" || FALLBACK_REASONS.includes(verdict.reason)).toBe(true);
    }),
  );
});
